"""Old segments, whose files are removed once the journal says that their log begins behind them.

One may be kept for the log's next segment. It goes after a minute, for which Kafka keeps all files
of old segments, or as soon as the disk is full.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Final

import trio

from tidemark.broker.replicas.disk import DiskWriter
from tidemark.broker.threads import in_thread
from tidemark.partitions.storage.recycled_file import RecycledFile
from tidemark.partitions.storage.refusals import SyncFailed, may_pass
from tidemark.partitions.storage.retention import Removal

KEPT_SECONDS: Final = 60.0

logger = logging.getLogger(__name__)


class Removals:
    """Of all logs. Used on the loop; the files are removed on a thread."""

    def __init__(self, disk: DiskWriter, *, is_full: Callable[[], bool] = lambda: False) -> None:
        self._disk = disk
        self._is_full = is_full
        self._kept: dict[RecycledFile, tuple[Removal, float]] = {}
        """By whose removal, and until when."""
        self._due: list[tuple[int, Sequence[Removal]]] = []
        """By the write of the journal that says so."""

    def add(self, write: int, removals: Sequence[Removal]) -> None:
        """Remove files, once that write is durable."""
        self._due.append((write, removals))

    async def run_durable(self) -> None:
        """What the journal has by now."""
        durable = self._disk.durable
        due = [each for each in self._due if each[0] <= durable]
        self._due = [each for each in self._due if each[0] > durable]
        for write, removals in due:
            await self._run(write, removals)

    async def look_after_kept(self) -> None:
        """Have used what nobody reads any more; drop what has not been used."""
        now = trio.current_time()
        for recycled, (removal, until) in list(self._kept.items()):
            is_over = until <= now or self._is_full()
            if is_over or not (recycled.is_waiting or recycled.is_offered):
                del self._kept[recycled]
            if recycled.is_waiting or (is_over and recycled.is_offered):
                await self._try(recycled.drop if is_over else removal.offer)

    async def _try(self, step: Callable[[], None]) -> None:
        try:
            await in_thread(step)
        except SyncFailed as error:
            self._disk.fail(error)
        except OSError as error:
            logger.warning("an old segment's file cannot be used again: %s", error)

    async def run(self) -> None:
        """All, as the journal gets it; what cannot be removed now is left for the next time."""
        due, self._due = self._due, []
        for write, removals in due:
            await self._disk.wait_durable(write)
            if self._disk.error is None:
                await self._run(write, removals)

    async def _run(self, write: int, removals: Sequence[Removal]) -> None:
        for number, removal in enumerate(removals):
            try:
                await in_thread(removal.run)
                recycled = removal.state.recycled
                if recycled.is_waiting or recycled.is_offered:
                    self._kept[recycled] = removal, trio.current_time() + KEPT_SECONDS
            except SyncFailed as error:
                # Of a directory: what else was made or named in it may not be on the disk either.
                self._disk.fail(error)
                return
            except OSError as error:
                logger.warning("old segments cannot be removed now: %s", error)
                if may_pass(error):
                    self._due.append((write, removals[number:]))
                    return
                # They are below the log's start: the next opening removes them.
