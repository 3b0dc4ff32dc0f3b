"""Opening a log: what of its files is the log, after a clean stop or a crash.

The *recovery point* divides it. Below, everything was synced: what is wrong there is corruption,
and is refused, because a shorter log would silently lose what was acknowledged. At and above it a
crash may have left anything: bytes torn, missing, zero, out of order, whole files missing. There
every batch is checked, and the log ends before the first that does not hold together.

A log that ends exactly at its recovery point was closed in order; of it only the last few headers
are read, so that ten thousand of them open in seconds.

How that is seen is in `segment_ends`, what is done with the segments at and above the recovery
point in `tail_recovery`, and how a batch is checked in `tail_check`.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise

from tidemark.partitions.raft.entries import EpochStart
from tidemark.partitions.storage.compaction.swapping import finish_swaps
from tidemark.partitions.storage.derived_state import DerivedState, tell_batches
from tidemark.partitions.storage.epoch_rows import EpochsByOffset
from tidemark.partitions.storage.files import TEMPORARY_SUFFIX
from tidemark.partitions.storage.home import LogHome
from tidemark.partitions.storage.names import (
    INDEX_SUFFIX,
    LOG_SUFFIX,
    TIME_INDEX_SUFFIX,
    offset_in,
)
from tidemark.partitions.storage.recovery_report import RecoveryReport, shared
from tidemark.partitions.storage.segment import Segment
from tidemark.partitions.storage.segment_ends import (
    begins_in_epoch,
    check_end,
    ends_at,
    ends_before,
    ends_in_epoch,
)
from tidemark.partitions.storage.snapshots import offsets_in
from tidemark.partitions.storage.tail_check import TailCheck
from tidemark.partitions.storage.tail_recovery import TailRecovery, refuse_lost_end
from tidemark.protocol.errors import StorageError, TidemarkError
from tidemark.protocol.types import Epoch, Offset


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
        may_end_earlier: bool = False,
    ) -> None:
        """`unsynced`, `may_begin_later`, `may_end_earlier`: see `Log.open`."""
        self._report = RecoveryReport()
        self._home = home
        self.start_offset = start_offset
        """Where the log begins; once it has run, where that is by its files."""
        self._may_begin_later = may_begin_later
        self._may_end_earlier = may_end_earlier
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
        if segments and self._is_of_another_log(segments[0]):
            return self._start_anew(instead_of=segments)
        if segments:
            self._settle_beginning(segments[0])
        if self._state is not None:
            self._load_snapshot(self._state, segments)
        if not segments:
            refuse_lost_end(self._home.directory, self.start_offset, self._recovery_point)
            return self._start_anew()
        if not self._may_end_earlier and ends_at(segments, self._recovery_point):
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
        settled = self._settled(segments)
        for segment, following in pairwise(segments[: settled + 1]):
            check_end(segment, following)
        self._observe(segments[:settled])
        check = TailCheck(
            recovery_point=self._recovery_point,
            epoch_max=self._epoch_max,
            epochs=self._epochs,
            state=self._state,
            told_to=self._told_to,
            report=self._report,
        )
        tail = TailRecovery(
            self._home,
            self._recovery_point,
            check,
            self._report,
            may_end_earlier=self._may_end_earlier,
        )
        tail.run(segments, settled)

    def _settled(self, segments: Sequence[Segment]) -> int:
        """How many segments are wholly below the recovery point, and were not cut since.

        From where another log parts with this one, it has other epochs. So behind a cut that nobody
        knows of any more there is no batch of the epoch that this log had there, and what precedes
        such a batch was not cut.
        """
        settled = sum(following.base_offset <= self._recovery_point for following in segments[1:])
        if settled and not ends_before(
            segments[settled - 1], segments[settled], self._recovery_point
        ):
            settled -= 1
        if self._may_end_earlier and self._epochs is not None:
            while settled and not ends_in_epoch(segments[settled], self._epochs):
                settled -= 1
        return settled

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

    def _is_of_another_log(self, first: Segment) -> bool:
        """Whether the log begins later than is known, with nothing that it is known to have held.

        What it would say of the place where it begins is not so in any log: it knows no epoch for
        it. So it begins where it is known to have begun, and holds nothing.
        """
        return (
            self._may_end_earlier
            and self._epochs is not None
            and first.base_offset > self.start_offset
            and not begins_in_epoch(first, self._epochs)
        )

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

    def _load_snapshot(self, state: DerivedState, segments: Sequence[Segment]) -> None:
        """Replace the state by the latest snapshot that nothing recovery does can contradict.

        Not one from below where the log's files begin: the batches in between are gone,
        and what was true before them may be wrong behind them.
        """
        if state.load is None:
            return
        snapshots = self._home.snapshots
        first = segments[0].base_offset if segments else self.start_offset
        settled = max(self._recovery_point, self.start_offset)
        if self._may_end_earlier and segments:
            settled = min(settled, segments[self._settled(segments)].base_offset)
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
