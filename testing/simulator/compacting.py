"""What a broker's cleaner does to a log, step by step: the log is cut, or given up, in between."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from tidemark.partitions.replication.group_replica import GroupReplica
from tidemark.partitions.storage.compaction.compacting import CompactionRun
from tidemark.partitions.storage.compaction.job import Rewritten
from tidemark.partitions.storage.compaction.log_swap import LogSwap
from tidemark.partitions.storage.compaction.settings import CompactionLimits, CompactionSettings
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.types import ProducerId
from tidemark.testing.checkers import keyed_values
from tidemark.testing.simulator.watch import pieces

if TYPE_CHECKING:
    from tidemark.testing.simulator.process import Process

_LARGER: Final = 4


class SlowCompactions:
    """Of one process, each log by itself. Between any two steps time passes, for the cleaner waits
    for a process or a thread."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._under_way: set[PartitionKey] = set()

    def begin(self, replica: GroupReplica, settings: CompactionSettings) -> None:
        """Where there is nothing to compact, or that is under way, nothing."""
        process, log = self._process, replica.log
        dirt = log.dirt(settings, process.wall_ms, end_offset=replica.high_watermark)
        if replica.key in self._under_way or not dirt.is_due(settings):
            return
        self._under_way.add(replica.key)
        process.world.coverage.counts["compactions"] += 1
        job = log.compaction_job(
            dirt,
            settings,
            CompactionLimits(),
            now_ms=process.wall_ms,
            producers=[ProducerId(each) for each, _ in replica.producers.producers],
        )
        # As if the topic were to have larger segments since: a few become one, if nothing else.
        job = replace(job, segment_bytes=_LARGER * job.segment_bytes)
        run = CompactionRun(process.broker.files, job, lambda size_bytes: None)
        _SlowCompaction(process, replica, run, partial(self._under_way.discard, replica.key))


class _SlowCompaction:
    """One, from the moment when its job is known."""

    def __init__(
        self,
        process: Process,
        replica: GroupReplica,
        run: CompactionRun,
        is_over: Callable[[], None],
    ) -> None:
        self._process = process
        self._replica = replica
        self._log = replica.log
        self._run = run
        self._segments = iter(run)
        self._is_over = is_over
        self._soon(self._rewrite)

    def _soon(self, step: Callable[[], bool]) -> None:
        seconds = self._process.world.knobs.compaction_seconds
        self._process.later(self._process.broker.rng.random() * seconds, self._do, step)

    def _do(self, step: Callable[[], bool]) -> None:
        """Whatever comes of it; a failed disk ends the process, as in the real one."""
        try:
            goes_on = step()
        except OSError as error:
            goes_on = False
            if self._log.has_failed:
                self._process.disk_failed(error)
                return
            self._process.world.coverage.counts["compactions failed"] += 1
        if not goes_on:
            self._is_over()

    def _rewrite(self) -> bool:
        rewritten = next(self._segments, None)
        if rewritten is None:
            self._log.note_cleaned(self._run.tally.cleaned_to)
            return False
        return self._begin_swap(rewritten) if rewritten.is_changed else self._go_on()

    def _go_on(self) -> bool:
        self._soon(self._rewrite)
        return True

    def _begin_swap(self, rewritten: Rewritten) -> bool:
        swap = self._log.begin_swap(rewritten)
        if swap is None:
            return False
        self._soon(partial(self._commit, swap))
        return True

    def _commit(self, swap: LogSwap) -> bool:
        is_committed = False
        try:
            is_committed = swap.commit()
        finally:
            if not is_committed:
                self._log.end_swap(swap)
        if not is_committed:
            self._process.world.coverage.counts["compactions of logs that were cut"] += 1
            return False
        self._soon(partial(self._adopt, swap))
        return True

    def _adopt(self, swap: LogSwap) -> bool:
        before = keyed_values.last_values(pieces(self._log))
        self._log.adopt(swap)
        after = keyed_values.last_values(pieces(self._log))
        keyed_values.stay(self._replica.name, before, after)
        self._soon(partial(self._finish, swap))
        return True

    def _finish(self, swap: LogSwap) -> bool:
        if not swap.finish():
            return False
        self._log.sweep().run()
        return self._go_on()
