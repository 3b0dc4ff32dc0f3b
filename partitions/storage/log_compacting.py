"""What of a log is worth compacting, and putting new segments in the place of old ones.

Only closed segments are compacted, of which every byte is on the disk and committed: nothing that
anybody may yet cut.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tidemark.partitions.storage import retention
from tidemark.partitions.storage.compaction.job import Job, Rewritten, SourceSegment
from tidemark.partitions.storage.compaction.log_swap import LogSwap
from tidemark.partitions.storage.compaction.progress import (
    forget_progress,
    load_progress,
    save_progress,
    saved_ms,
)
from tidemark.partitions.storage.compaction.settings import (
    NO_LIMIT,
    CompactionLimits,
    CompactionSettings,
)
from tidemark.partitions.storage.log_reading import ReadingLog
from tidemark.partitions.storage.segment import Segment
from tidemark.protocol.types import Offset, ProducerId


class Dirt(NamedTuple):
    """How much of a log would be looked at by a compaction, now."""

    clean_bytes: int
    dirty_bytes: int
    dirty_from: Offset
    end_offset: Offset
    """Of the last segment that may be compacted."""
    is_overdue: bool
    """Something in it has been dirty for longer than `max.compaction.lag.ms`."""

    @property
    def ratio(self) -> float:
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0

    def is_due(self, settings: CompactionSettings) -> bool:
        return self.dirty_bytes > 0 and (
            self.is_overdue or self.ratio > settings.min_cleanable_dirty_ratio
        )


class CompactingLog(ReadingLog):
    """A log that is compacted while it is in use. All of this is called on the loop's thread."""

    __slots__ = ()

    @property
    def cleaned_to(self) -> Offset:
        """Below it no key stands twice."""
        if self._cleaned_to is None:
            self._cleaned_to = load_progress(self._home.files, self._home.directory)
        return max(self._segments[0].base_offset, min(self._cleaned_to, self.end_offset))

    @property
    def cleaned_ms(self) -> int | None:
        """When the last run has ended, in ms since 1970, as the disk says; `None`: none has, or
        what it did was cut off."""
        return saved_ms(self._home.files, self._home.directory)

    def dirt(self, settings: CompactionSettings, now_ms: int, *, end_offset: Offset) -> Dirt:
        """What there is to be compacted below `end_offset`, all of which is committed."""
        dirty_from = self.cleaned_to
        clean_bytes = dirty_bytes = 0
        end, first_dirty = self._segments[0].base_offset, None
        for segment in self._compactable(end_offset):
            if segment.end_offset <= dirty_from:
                clean_bytes += segment.size_bytes
            elif self._is_too_young(segment, settings, now_ms):
                break
            else:
                first_dirty = first_dirty or segment
                dirty_bytes += segment.size_bytes
            end = segment.end_offset
        is_overdue = (
            first_dirty is not None
            and settings.max_compaction_lag_ms < NO_LIMIT
            and now_ms - retention.first_time_ms(first_dirty, now_ms)
            > settings.max_compaction_lag_ms
        )
        return Dirt(clean_bytes, dirty_bytes, dirty_from, end, is_overdue)

    def _compactable(self, end_offset: Offset) -> Iterable[Segment]:
        unsynced = {*self._unsynced, *self._state.unfinished}
        for segment in self._segments[:-1]:
            if segment.end_offset > end_offset or segment.writer or segment in unsynced:
                return
            yield segment

    def _is_too_young(self, segment: Segment, settings: CompactionSettings, now_ms: int) -> bool:
        if settings.min_compaction_lag_ms <= 0:
            return False
        last_ms = retention.last_time_ms(self._home.files, segment)
        return now_ms - last_ms < settings.min_compaction_lag_ms

    def compaction_job(
        self,
        dirt: Dirt,
        settings: CompactionSettings,
        limits: CompactionLimits,
        *,
        now_ms: int,
        producers: Iterable[ProducerId],
    ) -> Job:
        """What is to be done about `dirt`, of which there is some."""
        assert dirt.dirty_bytes
        sources = [
            SourceSegment(segment.base_offset, segment.end_offset, segment.size_bytes)
            for segment in self._segments
            if segment.end_offset <= dirt.end_offset
        ]
        return Job(
            directory=self._home.directory,
            segments=tuple(sources),
            dirty_from=dirt.dirty_from,
            now_ms=now_ms,
            delete_retention_ms=settings.delete_retention_ms,
            segment_bytes=self._segment_bytes,
            interval_bytes=self._home.interval_bytes,
            producers=frozenset(producers),
            limits=limits,
        )

    def has_lost(self, job: Job) -> bool:
        """Whether retention has removed segments that a job is about, so that it rightly fails."""
        return self._segments[0].base_offset != job.segments[0].base_offset

    def begin_swap(self, rewritten: Rewritten) -> LogSwap | None:
        """Have a new segment replace those it was made of; `None` if they are not all there, or the
        log was given up while it was made."""
        old = tuple(
            segment
            for segment in self._segments[:-1]
            if rewritten.base_offset <= segment.base_offset < rewritten.end_offset
        )
        is_same = (
            old
            and old[0].base_offset == rewritten.base_offset
            and old[-1].end_offset == rewritten.end_offset
        )
        if not is_same or self._state.swap is not None or self._state.is_given_up:
            return None
        swap = self._state.swap = LogSwap(self._home, self._state, old, rewritten)
        return swap

    def end_swap(self, swap: LogSwap) -> None:
        """Forget a swap whose commit has failed."""
        if self._state.swap is swap and not swap.is_committed:
            self._state.swap = None

    def adopt(self, swap: LogSwap) -> None:
        """Read the new segment from now on; whoever holds a slice of the old ones keeps it."""
        with self._state.lock:
            self._adopt_locked(swap)

    def _adopt_locked(self, swap: LogSwap) -> None:
        if self._state.swap is not swap or swap.is_adopted:
            return
        first = self._segments.index(swap.old[0])
        self._segments[first : first + len(swap.old)] = [swap.new]
        self._sealed_bytes += swap.new.size_bytes
        for segment in swap.old:
            self._sealed_bytes -= segment.size_bytes
            segment.detached = True
            segment.forget_files()
        swap.is_adopted = True

    def _settle_swap_locked(self) -> None:
        """Before the log's files are cut: a swap that counts is done to its end."""
        swap = self._state.swap
        if swap is not None and swap.is_committed:
            self._adopt_locked(swap)
            swap.finish_locked()
        self._state.swap = None

    def note_cleaned(self, cleaned_to: Offset) -> None:
        """A run has ended; it is of no use if the log was given up since. Blocking, for about the
        time of one sync of a small file."""
        with self._state.lock:
            if self._state.is_given_up:
                return
            self._cleaned_to = cleaned_to
            save_progress(self._home.files, self._home.directory, cleaned_to)

    def _forget_cleaned_above(self, offset: Offset) -> None:
        """What is cut off will be followed by something else."""
        if self.cleaned_to > offset:
            self._cleaned_to = Offset(0)
            forget_progress(self._home.files, self._home.directory)
