"""The segments at and above a log's recovery point: where the log ends, after a crash.

A crash may have left anything there. The log ends before the first batch that does not hold
together; what is behind that is cut off, and what is before it made durable.
"""

from collections.abc import Sequence
from typing import Final

from tidemark.partitions.storage.compaction.progress import forget_progress, load_progress
from tidemark.partitions.storage.files import corrupt
from tidemark.partitions.storage.home import LogHome
from tidemark.partitions.storage.index import GrowingIndex
from tidemark.partitions.storage.older_tail import LEFT_BY_OLDER, is_left_by_older
from tidemark.partitions.storage.recovery_report import Cut, RecoveryReport
from tidemark.partitions.storage.segment import Segment
from tidemark.partitions.storage.tail_check import LongGap, TailCheck, Torn
from tidemark.protocol.errors import StorageError
from tidemark.protocol.types import Offset

_REWRITE_BYTES: Final = 1 << 20


class TailRecovery:
    """Of one log. Raises `StorageError` for damage below the recovery point, as `Recovery` does."""

    def __init__(
        self,
        home: LogHome,
        recovery_point: Offset,
        check: TailCheck,
        report: RecoveryReport,
        *,
        may_end_earlier: bool,
    ) -> None:
        """`report` is told what was cut. `may_end_earlier`: see `Log.open`."""
        self._home = home
        self._recovery_point = recovery_point
        self._check = check
        self._report = report
        self._may_end_earlier = may_end_earlier

    def run(self, segments: list[Segment], first: int) -> None:
        """Check the segments from number `first` on, and cut the log before what is not whole."""
        # Where the segment before ends may have been seen, and not be so on the disk.
        is_at_end = first > 0 and segments[first].base_offset == self._recovery_point
        self._keep_what_is_whole(segments, first)
        if segments[-1].end_offset > self._recovery_point or self._report.cut is not None:
            self._make_durable(segments[first - is_at_end :])

    def _keep_what_is_whole(self, segments: list[Segment], first: int) -> None:
        expected = segments[first].base_offset
        for number in range(first, len(segments)):
            segment = segments[number]
            if segment.base_offset != expected:
                what = f"the segment before it ends at offset {expected}"
                self._cut(segments, number, 0, expected, what)
                return
            index = GrowingIndex(segment.base_offset, self._home.interval_bytes)
            try:
                expected = self._check.check(segment, index)
            except Torn as torn:
                segment.end_offset = torn.end_offset
                segment.use_index(index)
                left = is_left_by_older(segment.file, torn.position, segment.base_offset)
                what = LEFT_BY_OLDER if left else torn.what
                self._cut(segments, number, torn.position, torn.end_offset, what, is_older=left)
                return
            except LongGap as long:
                self._refuse_cut(segment.path, long.position, long.end_offset, str(long))
                self._home.end_in_gap(segment, long.position, long.gap, long.end_offset)
                self._cut(segments, number, segment.size_bytes, long.end_offset, str(long))
                return
            segment.end_offset = expected
            segment.use_index(index)
        if not self._may_end_earlier:
            refuse_lost_end(segments[-1].path, expected, self._recovery_point)

    def _refuse_cut(self, path: str, position: int, end_offset: Offset, what: str) -> None:
        """Below the recovery point nothing is cut, and so nothing may be changed before this."""
        if end_offset < self._recovery_point and not self._may_end_earlier:
            raise corrupt(path, position, what)

    def _cut(
        self,
        segments: list[Segment],
        number: int,
        position: int,
        end_offset: Offset,
        what: str,
        *,
        is_older: bool = False,
    ) -> None:
        """End the log at a position of one segment: the crash left nothing whole behind it.

        The order bears a second crash. The later segments' names are gone for good before the log
        grows to where they begin, or one that came back would continue it. Index files, snapshots
        and progress of a compaction that speak of what is cut are gone for good before it is.
        """
        path = segments[number].path
        self._refuse_cut(path, position, end_offset, what)
        self._report.cut = Cut(path=path, position=position, what=what, is_older=is_older)
        kept = number + 1 if position or number == 0 else number
        for segment in reversed(segments[kept:]):
            self._report.cut_bytes += segment.size_bytes
            self._report.removed_segments += 1
            self._home.remove_segment(segment)
        del segments[kept:]
        last = segments[-1]
        if kept == number + 1:
            self._home.remove_index(last)
        self._home.snapshots.remove_above(end_offset)
        if load_progress(self._home.files, self._home.directory) > end_offset:
            forget_progress(self._home.files, self._home.directory)
        self._home.sync()
        if kept == number + 1:
            self._report.cut_bytes += last.size_bytes - position
            last.size_bytes = position
            last.end_offset = end_offset

    def _make_durable(self, segments: Sequence[Segment]) -> None:
        """What was kept is the log from now on: it must not be lost by a later crash.

        It is written again first. A process before this one may have ended because a sync failed:
        then the page cache shows bytes that the disk does not have, and calls them clean.
        """
        for segment in segments:
            file = self._home.files.open(segment.path)
            if file.size() != segment.size_bytes:
                file.truncate(segment.size_bytes)
            start = segment.position_of(self._recovery_point)
            for position in range(start, segment.size_bytes, _REWRITE_BYTES):
                length = min(_REWRITE_BYTES, segment.size_bytes - position)
                file.pwrite(file.pread(length, position), position)
            file.sync()
        self._home.sync()


def refuse_lost_end(path: str, end_offset: Offset, recovery_point: Offset) -> None:
    """Raises `StorageError` if a log that is whole lacks something that was synced."""
    if end_offset < recovery_point:
        raise StorageError(
            f"{path}: the log ends at offset {end_offset}, but was on the disk up to "
            f"{recovery_point}. Nothing was changed. Restore its files from a copy"
        )
