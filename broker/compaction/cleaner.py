"""Compacts the hosted logs, one at a time, the dirtiest first.

The work is in a process of its own. What is left for the loop is to say what is due, and to have a
new segment take the old ones' place.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable
from contextlib import aclosing
from typing import Final, NamedTuple, TypeVar

import trio

from tidemark.broker.compaction.process import CompactionFailed, open_run
from tidemark.broker.config import BrokerSettings
from tidemark.broker.replicas.replica import Replica
from tidemark.broker.replicas.replica_parts import ReplicaServices, compaction_settings
from tidemark.broker.threads import in_thread
from tidemark.partitions.storage.compaction.job import Job, Rewritten, Tally
from tidemark.partitions.storage.compaction.log_swap import LogSwap
from tidemark.partitions.storage.compaction.settings import CompactionLimits
from tidemark.partitions.storage.log import Log
from tidemark.partitions.storage.log_compacting import Dirt
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.errors import CorruptBatch, RequestError, StorageError
from tidemark.protocol.types import Offset, ProducerId

RETRY_SECONDS: Final = 60.0
"""After a run that failed for a reason that may pass: a full disk, a process that was killed."""
_PASSED_OVER_MAX: Final = 1_000
"""Logs that are not compacted, until others on the loop have their turn."""

logger = logging.getLogger(__name__)

T = TypeVar("T")


class Due(NamedTuple):
    """A log that is to be compacted."""

    replica: Replica
    dirt: Dirt


class _Changed(Exception):
    """The log was cut, or closed, while it was compacted."""


class Cleaner:
    """All compaction of one broker. Used on the loop's thread."""

    def __init__(
        self, settings: BrokerSettings, services: ReplicaServices, hosted: Iterable[Replica]
    ) -> None:
        self._services = services
        self._hosted = hosted
        self._metrics = services.metrics.compaction
        self._interval = settings.log_cleaner_backoff_ms / 1000
        self._limits = CompactionLimits(
            map_bytes_max=settings.log_cleaner_dedupe_buffer_size,
            bytes_per_second_max=settings.log_cleaner_io_max_bytes_per_second or None,
        )
        # By when to try again; a log that is damaged, never.
        self._set_aside: dict[PartitionKey, float] = {}
        # To where a run would come again: a transaction there is undecided.
        self._stuck_at: dict[PartitionKey, Offset] = {}
        self._unfinished: dict[LogSwap, Log] = {}

    async def run(self) -> None:
        """Compact what is due, until the end."""
        while True:
            await trio.sleep(self._interval)
            await self._finish_again()
            # It writes the new segments before the old ones go.
            while not self._services.room.is_out and (due := await self._dirtiest()) is not None:
                await self._compact(due)

    async def _dirtiest(self) -> Due | None:
        """What is to be done next; looks at every log that is compacted."""
        found: list[Due] = []
        ratios: dict[str, float] = {}
        here = set[PartitionKey]()
        for number, replica in enumerate(self._hosted):
            if replica.config.is_compacted:
                here.add(replica.key)
            is_compacted = replica.config.is_compacted and replica.is_available
            if is_compacted:
                ratios[replica.name] = 1.0
                due = self._look(replica, ratios)
                if due is not None:
                    found.append(due)
            # To pass one over takes far less than the loop takes to come back.
            if is_compacted or number % _PASSED_OVER_MAX == 0:
                await trio.lowlevel.checkpoint()
        self._metrics.looked_at(ratios)
        self._keep_only(here)
        return max(found, key=_urgency, default=None)

    def _keep_only(self, keys: Collection[PartitionKey]) -> None:
        """Forget all others: they were deleted, or moved away."""
        for of_partitions in (self._set_aside, self._stuck_at):
            for key in of_partitions.keys() - keys:
                del of_partitions[key]

    def _look(self, replica: Replica, ratios: dict[str, float]) -> Due | None:
        settings = compaction_settings(replica.config)
        if self._is_set_aside(replica.key):
            return None
        try:
            log = replica.log
            if replica.name not in self._metrics.cleaned_seconds:
                self._metrics.found(replica.name, log.cleaned_ms)
            now_ms, end_offset = self._services.clock.now_ms(), replica.high_watermark
            dirt = log.dirt(settings, now_ms, end_offset=end_offset)
        except OSError as error:
            self._fail(replica, str(error), is_final=False)
            return None
        except (StorageError, CorruptBatch, RequestError) as error:
            self._fail(replica, str(error), is_final=True)
            return None
        ratios[replica.name] = dirt.ratio
        is_held_up = self._stuck_at.get(replica.key) == dirt.end_offset
        if is_held_up or not dirt.is_due(settings):
            return None
        return Due(replica, dirt)

    def _is_set_aside(self, key: PartitionKey) -> bool:
        return self._set_aside.get(key, 0.0) > trio.current_time()

    async def _compact(self, due: Due) -> None:
        replica = due.replica
        try:
            log, job = replica.log, self._job(due)
            started = time.perf_counter()
            tally = await self._run(replica, log, job)
            if not replica.is_available:
                raise _Changed
            await in_thread(log.note_cleaned, tally.cleaned_to)
        except (_Changed, RequestError):
            # It is looked at again, if it is there.
            self._set_aside[replica.key] = trio.current_time() + self._interval
        except StorageError as error:
            self._fail(replica, str(error), is_final=True)
        except (OSError, CompactionFailed, CorruptBatch) as error:
            self._fail(replica, str(error), is_final=False)
        else:
            if tally.cleaned_to <= job.dirty_from:
                self._stuck_at[replica.key] = due.dirt.end_offset
            self._succeed(replica, tally, time.perf_counter() - started)

    def _job(self, due: Due) -> Job:
        replica = due.replica
        return replica.log.compaction_job(
            due.dirt,
            compaction_settings(replica.config),
            self._limits,
            now_ms=self._services.clock.now_ms(),
            producers=(ProducerId(producer) for producer, _ in replica.member.producers.producers),
        )

    async def _run(self, replica: Replica, log: Log, job: Job) -> Tally:
        try:
            async with open_run(job) as run, aclosing(run.segments()) as segments:
                async for rewritten in segments:
                    if rewritten.is_changed:
                        await self._swap(log, rewritten)
        except (OSError, StorageError, CompactionFailed):
            # It need not be wrong: files go while they are read, and while they are replaced.
            if not replica.is_available or replica.log is not log or log.has_lost(job):
                raise _Changed from None
            raise
        return run.tally

    async def _swap(self, log: Log, rewritten: Rewritten) -> None:
        """Have a new segment take its place. It is not left half way by a stop."""
        swap = log.begin_swap(rewritten)
        if swap is None:
            raise _Changed
        with trio.CancelScope(shield=True):
            try:
                if not await self._do(log, swap.commit):
                    raise _Changed
            except (OSError, _Changed):
                log.end_swap(swap)
                raise
            log.adopt(swap)
            self._unfinished[swap] = log
            await self._finish(swap)

    async def _finish(self, swap: LogSwap) -> None:
        log = self._unfinished[swap]
        is_same = await self._do(log, swap.finish)
        del self._unfinished[swap]
        if not is_same:
            raise _Changed
        await self._do(log, log.sweep().run)

    async def _finish_again(self) -> None:
        """What could not be done to its end: till it is, the log keeps what it should not."""
        for swap, log in list(self._unfinished.items()):
            try:
                with trio.CancelScope(shield=True):
                    await self._finish(swap)
            except _Changed:
                pass
            except OSError as error:
                logger.warning("%s: old segments cannot be removed now: %s", log.directory, error)

    async def _do(self, log: Log, step: Callable[[], T]) -> T:
        """A step of a swap, on a thread. A sync that fails ends the broker, as any."""
        try:
            return await in_thread(step)
        except OSError as error:
            if log.has_failed:
                self._services.disk.fail(error)
            raise

    def _succeed(self, replica: Replica, tally: Tally, seconds: float) -> None:
        self._set_aside.pop(replica.key, None)
        self._metrics.succeeded(replica.name, tally, seconds)
        logger.info(
            "compacted %s up to offset %d in %.1f s: %d of %d records stay, %d bytes of %d",
            replica.name,
            tally.cleaned_to,
            seconds,
            tally.records_kept,
            tally.records_read,
            tally.bytes_written,
            tally.bytes_read,
        )
        if tally.unreadable_batches:
            logger.warning(
                "%s has %d batches in which no record can be read: they stay as they are, whatever "
                "newer records of their keys there are; tidemark log verify names them",
                replica.name,
                tally.unreadable_batches,
            )

    def _fail(self, replica: Replica, why: str, *, is_final: bool) -> None:
        until = float("inf") if is_final else trio.current_time() + RETRY_SECONDS
        self._set_aside[replica.key] = until
        self._metrics.failed(replica.name, why)
        logger.warning(
            "%s cannot be compacted, and grows%s: %s",
            replica.name,
            " until the broker is started again" if is_final else " until it can",
            why,
        )


def _urgency(due: Due) -> tuple[bool, float]:
    return due.dirt.is_overdue, due.dirt.ratio
