"""Opening a log: what of its files is the log, after a clean stop or a crash.

The *recovery point* divides it. Below, everything was synced: what is wrong there is corruption,
and is refused, because a shorter log would silently lose what was acknowledged. At and above it a
crash may have left anything: bytes torn, missing, zero, out of order, whole files missing. There
every batch is checked, and the log ends before the first that does not hold together.

A log that ends exactly at its recovery point was closed in order; of it only the last few headers
are read, so that ten thousand of them open in seconds.

How a batch is checked is in `tail_check`.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final

from tidemark.partitions.raft.entries import EpochStart
from tidemark.partitions.storage.compaction.progress import forget_progress, load_progress
from tidemark.partitions.storage.compaction.swapping import finish_swaps
from tidemark.partitions.storage.derived_state import DerivedState, tell_batches
from tidemark.partitions.storage.epoch_rows import EpochsByOffset
from tidemark.partitions.storage.files import TEMPORARY_SUFFIX, corrupt
from tidemark.partitions.storage.home import LogHome
from tidemark.partitions.storage.index import GrowingIndex
from tidemark.partitions.storage.names import (
    INDEX_SUFFIX,
    LOG_SUFFIX,
    TIME_INDEX_SUFFIX,
    offset_in,
)
from tidemark.partitions.storage.older_tail import LEFT_BY_OLDER, is_left_by_older
from tidemark.partitions.storage.recovery_report import Cut, RecoveryReport, shared
from tidemark.partitions.storage.segment import Segment
from tidemark.partitions.storage.snapshots import offsets_in
from tidemark.partitions.storage.tail_check import LongGap, TailCheck, Torn, misplaced
from tidemark.protocol.errors import StorageError, TidemarkError
from tidemark.protocol.types import Epoch, Offset

_SMALL_SEGMENT_BYTES: Final = 16 * 1024
"""Walked from its start rather than from its index: two files less to open."""
_REWRITE_BYTES: Final = 1 << 20


class Recovery:
    """One opening of one log."""

    def __init__(
        self,
        home: LogHome,
        *,
        start_offset: Offset,
        recovery_point: Offset,
        epoch_max: Epoch | None,
        epochs: Sequence[EpochStart] | None,
        state: DerivedState | None,
        unsynced: list[str] | None = None,
        may_begin_later: bool = False,
    ) -> None:
        """`unsynced`, `may_begin_later`: see `Log.open`."""
        self._report = RecoveryReport()
        self._home = home
        self.start_offset = start_offset
        """Where the log begins; once it has run, where that is by its files."""
        self._may_begin_later = may_begin_later
        self._recovery_point = recovery_point
        self._epoch_max = epoch_max
        self._epochs = None if epochs is None else EpochsByOffset(epochs, start_offset)
        self._state = state
        self._unsynced = unsynced
        self._told_to = Offset(0)
        self._there: Mapping[str, int] = {}
        """The files that there were, with their sizes: of thousands of logs, to ask is a part of
        the start."""

    @property
    def report(self) -> RecoveryReport:
        """What it took, once it has run."""
        return shared(self._report)

    def run(self) -> list[Segment]:
        """The segments of the log, at least one; the last one is to be appended to.

        Raises `StorageError` for damage below the recovery point, and changes nothing then.
        """
        segments = self._listed_segments()
        self._clear_below_start(segments)
        if segments:
            self._settle_beginning(segments[0])
        if self._state is not None:
            first = segments[0].base_offset if segments else self.start_offset
            self._load_snapshot(self._state, first)
        if not segments:
            self._refuse_if_synced(self._home.directory, self.start_offset)
            return self._start_anew()
        if self._ends_at_recovery_point(segments):
            self._report.clean = True
            # It may be so only since a start before this one, which removed segments and did not
            # live to sync that: the first sync of what is appended does.
            segments[-1].is_new = True
            self._observe(segments)
        else:
            self._recover(segments)
        if segments[-1].end_offset < self.start_offset:
            return self._start_anew(instead_of=segments)
        return segments

    def _recover(self, segments: list[Segment]) -> None:
        """Look at the segments below the recovery point, check those above."""
        settled = sum(following.base_offset <= self._recovery_point for following in segments[1:])
        if settled and not self._ends_there(segments[settled - 1], segments[settled]):
            settled -= 1
        for segment, following in pairwise(segments[: settled + 1]):
            self._check_end(segment, following.base_offset)
        self._observe(segments[:settled])
        self._recover_tail(segments, settled)

    def _listed_segments(self) -> list[Segment]:
        """The segments by their names; leftovers of interrupted writes are removed."""
        home = self._home
        sizes = self._there = finish_swaps(home.files, home.directory)
        bases = {base for name in sizes if (base := offset_in(name, LOG_SUFFIX)) is not None}
        for name in sizes:
            owner = offset_in(name, INDEX_SUFFIX)
            owner = offset_in(name, TIME_INDEX_SUFFIX) if owner is None else owner
            if name.endswith(TEMPORARY_SUFFIX) or (owner is not None and owner not in bases):
                home.files.remove(f"{home.directory}/{name}")
        segments = [home.segment(base, end_offset=base, size_bytes=0) for base in sorted(bases)]
        for segment, following in pairwise(segments):
            segment.end_offset = following.base_offset
        for segment in segments:
            segment.size_bytes = sizes[segment.path.rpartition("/")[2]]
        return segments

    def _clear_below_start(self, segments: list[Segment]) -> None:
        """Finish a removal that a crash interrupted."""
        while len(segments) > 1 and segments[1].base_offset <= self.start_offset:
            self._home.remove_segment(segments.pop(0))

    def _start_anew(self, instead_of: list[Segment] | None = None) -> list[Segment]:
        """An empty log at the start offset: a new one, or one that lost all its start left it."""
        for segment in reversed(instead_of or []):
            self._home.remove_segment(segment)
        is_first = not self._there
        segment = self._home.create_segment(self.start_offset, is_first=is_first)
        segment.writer = None
        if not is_first:
            # Of thousands of new partitions, to look for it is a part of what making them costs.
            self._home.snapshots.remove_above(self.start_offset)
        if self._unsynced is None:
            self._home.sync()
        else:
            self._unsynced.append(self._home.directory)
        segment.is_new = False
        return [segment]

    def _ends_at_recovery_point(self, segments: list[Segment]) -> bool:
        """Whether the last segment ends exactly there, by its last few headers. Of one that nothing
        was written to, it is the segment before that says so."""
        last = segments[-1]
        if not last.size_bytes:
            is_there = last.base_offset == self._recovery_point
            return is_there and (len(segments) == 1 or self._ends_there(segments[-2], last))
        if last.base_offset >= self._recovery_point:
            return False
        try:
            last.end_offset = self._end_by_headers(last)
        except StorageError:
            return False
        return last.end_offset == self._recovery_point

    def _end_by_headers(self, segment: Segment) -> Offset:
        """Where the batches of a segment end, found from its last index entry on."""
        position = 0
        if segment.size_bytes > _SMALL_SEGMENT_BYTES:
            position = segment.boundary_at(segment.size_bytes - 1).position
        end_offset = segment.base_offset
        for at, header in segment.batches_from(position):
            if at > position and header.base_offset != end_offset:
                raise corrupt(segment.path, at, misplaced(header, end_offset))
            end_offset = header.next_offset
        return end_offset

    def _ends_there(self, segment: Segment, following: Segment) -> bool:
        """Whether the last segment below the recovery point ends where its batches do, as far as a
        crash has a say in that.

        What was behind them was cut off before the next segment was begun: of a recycled file, or
        of a batch that found no room. Where a recovery point is further, that was synced.
        """
        if following.base_offset < self._recovery_point:
            return True  # if not, it is damage
        try:
            return self._end_by_headers(segment) == following.base_offset
        except StorageError:
            return False

    def _check_end(self, segment: Segment, following: Offset) -> None:
        """A segment below the recovery point must end where the next one begins."""
        end_offset = self._end_by_headers(segment)
        if end_offset != following:
            raise corrupt(
                segment.path,
                segment.size_bytes,
                f"it ends at offset {end_offset}, the next segment begins at {following}",
            )

    def _recover_tail(self, segments: list[Segment], first: int) -> None:
        """Check the segments from number `first` on, and cut the log before what is not whole."""
        check = TailCheck(
            recovery_point=self._recovery_point,
            epoch_max=self._epoch_max,
            epochs=self._epochs,
            state=self._state,
            told_to=self._told_to,
            report=self._report,
        )
        expected = segments[first].base_offset
        # Where the segment before ends may have been seen, and not be so on the disk.
        is_at_end = first > 0 and expected == self._recovery_point
        for number in range(first, len(segments)):
            segment = segments[number]
            if segment.base_offset != expected:
                what = f"the segment before it ends at offset {expected}"
                self._cut(segments, number, 0, expected, what)
                break
            index = GrowingIndex(segment.base_offset, self._home.interval_bytes)
            try:
                expected = check.check(segment, index)
            except Torn as torn:
                segment.end_offset = torn.end_offset
                segment.use_index(index)
                left = is_left_by_older(segment.file, torn.position, segment.base_offset)
                what = LEFT_BY_OLDER if left else torn.what
                self._cut(segments, number, torn.position, torn.end_offset, what, is_older=left)
                break
            except LongGap as long:
                self._refuse_cut(segment.path, long.position, long.end_offset, str(long))
                self._home.end_in_gap(segment, long.position, long.gap, long.end_offset)
                self._cut(segments, number, segment.size_bytes, long.end_offset, str(long))
                break
            segment.end_offset = expected
            segment.use_index(index)
        else:
            self._refuse_if_synced(segments[-1].path, expected)
        if segments[-1].end_offset > self._recovery_point or self._report.cut is not None:
            self._make_durable(segments[first - is_at_end :])

    def _settle_beginning(self, first: Segment) -> None:
        """What retention removes is recorded before, so nothing goes above the recorded start."""
        if self._may_begin_later:
            self.start_offset = max(self.start_offset, first.base_offset)
        if self.start_offset < min(first.base_offset, self._recovery_point):
            raise StorageError(
                f"{first.path}: the log begins here, at offset {first.base_offset}, but was on the "
                f"disk from {self.start_offset} on. Nothing was changed. Restore its files from a "
                "copy"
            )

    def _refuse_if_synced(self, path: str, end_offset: Offset) -> None:
        if end_offset < self._recovery_point:
            raise StorageError(
                f"{path}: the log ends at offset {end_offset}, but was on the disk up to "
                f"{self._recovery_point}. Nothing was changed. Restore its files from a copy"
            )

    def _refuse_cut(self, path: str, position: int, end_offset: Offset, what: str) -> None:
        """Below the recovery point nothing is cut, and so nothing may be changed before this."""
        if end_offset < self._recovery_point:
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

    def _make_durable(self, segments: list[Segment]) -> None:
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

    def _load_snapshot(self, state: DerivedState, first: Offset) -> None:
        """Replace the state by the latest snapshot that nothing recovery does can contradict.

        Not one from below `first`, where the log's files begin: the batches in between are gone,
        and what was true before them may be wrong behind them.
        """
        if state.load is None:
            return
        snapshots = self._home.snapshots
        settled = max(self._recovery_point, self.start_offset)
        for offset in reversed(offsets_in(self._there)):
            if not first <= offset <= settled:
                continue
            payload = snapshots.load(offset)
            if payload is None:
                continue
            try:
                state.load(payload)
            except TidemarkError:
                continue
            self._told_to = offset
            return

    def _observe(self, segments: list[Segment]) -> None:
        """Tell the state what no snapshot covers, of segments that need no check."""
        if self._state is not None:
            tell_batches(segments, self._told_to, self._state)
