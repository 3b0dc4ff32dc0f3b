"""Where segments begin, against a list of them, however batches come and whatever happens."""

from collections.abc import Sequence

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.partitions.storage.appending import WAYS, Append
from tests.partitions.storage.batches import batch
from tests.partitions.storage.directories import files_with
from tidemark.partitions.storage.log import Log
from tidemark.partitions.storage.settings import LogSettings
from tidemark.protocol.types import Offset

DIRECTORY = "/p-0"
ABSURD_MS = 10**15
BATCH_BYTES = len(batch(0, size=20))
TIMES = st.one_of(
    st.integers(0, 60), st.integers(0, 60), st.just(-1), st.integers(ABSURD_MS, ABSURD_MS + 60)
)


class SegmentsAgainstListOfThem(RuleBasedStateMachine):
    """A segment ends where the next append is too much, or too late by what it begins with."""

    @initialize()
    def begin(self) -> None:
        self.files = files_with(DIRECTORY)
        self.segment_ms = 10
        self.segments: list[tuple[int, list[int]]] = [(0, [])]
        """Where each begins, and the times of its batches of one record."""
        self.open(0)

    def open(self, recovery_point: int) -> None:
        self.log = Log.open(
            self.files, DIRECTORY, self.settings, recovery_point=Offset(recovery_point)
        )

    @property
    def settings(self) -> LogSettings:
        return LogSettings(
            segment_bytes=8 * BATCH_BYTES, segment_ms=self.segment_ms, retention_ms=-1
        )

    @property
    def end_offset(self) -> int:
        base, times = self.segments[-1]
        return base + len(times)

    @rule(
        way=st.sampled_from(WAYS),
        times=st.lists(TIMES, min_size=1, max_size=4),
    )
    def append(self, way: Append, times: Sequence[int]) -> None:
        _, there = self.segments[-1]
        is_full = len(there) + len(times) > 8
        is_late = there and 0 <= there[0] < ABSURD_MS and times[-1] > there[0] + self.segment_ms
        if there and (is_full or is_late):
            self.segments.append((self.end_offset, []))
        self.segments[-1][1].extend(times)
        way(self.log, times)

    @rule(segment_ms=st.sampled_from([1, 10, 30, 10**9]))
    def change_settings(self, segment_ms: int) -> None:
        self.segment_ms = segment_ms
        self.log.settings = self.settings

    @rule()
    def restart(self) -> None:
        self.open(self.log.close())

    @rule()
    def kill(self) -> None:
        self.files = self.files.after_kill()
        self.open(0)

    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        offset = data.draw(st.integers(0, self.end_offset))
        self.log.sync()
        self.log.truncate(Offset(offset))
        if offset < self.end_offset:
            kept = [(base, times) for base, times in self.segments if base <= offset]
            base, times = kept[-1]
            self.segments = [*kept[:-1], (base, times[: offset - base])]

    @invariant()
    def segments_begin_where_they_should(self) -> None:
        found = [segment.base_offset for segment in self.log._segments]
        assert found == [base for base, _ in self.segments]
        assert self.log.end_offset == self.end_offset

    @invariant()
    def and_hold_what_was_appended(self) -> None:
        for segment, (_, times) in zip(self.log._segments, self.segments, strict=True):
            assert [each.max_timestamp for _, each in segment.batches_from(0)] == times


TestSegmentsAgainstListOfThem = SegmentsAgainstListOfThem.TestCase
TestSegmentsAgainstListOfThem.settings = settings(
    max_examples=80, stateful_step_count=30, deadline=None
)
