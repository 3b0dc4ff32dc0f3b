"""The log against a list of batches, through every operation, crash and restart."""

import json
from collections import deque
from collections.abc import Iterator, Sequence
from random import Random
from typing import NamedTuple

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from tests.partitions.storage.batches import batch
from tests.partitions.storage.searches import find_timestamp, max_timestamp
from tidemark.partitions.storage import timestamps
from tidemark.partitions.storage.log import Log
from tidemark.partitions.storage.settings import LogSettings
from tidemark.partitions.storage.syncing import Capture
from tidemark.protocol.records.header import BatchHeader
from tidemark.protocol.types import Epoch, Offset
from tidemark.testing.memory_files import MemoryFiles

SETTINGS = LogSettings(
    segment_bytes=600, index_interval_bytes=150, retention_ms=-1, recycled_batch_bytes=0
)


@pytest.fixture(autouse=True, scope="module")
def short_steps() -> Iterator[None]:
    """A search by time stops after a few headers, and goes on in a log that may be another one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(timestamps, "HEADERS_MAX", 2)
        yield


class Batch(NamedTuple):
    base_offset: int
    timestamps_ms: tuple[int, ...]
    data: bytes

    @property
    def end_offset(self) -> int:
        return self.base_offset + len(self.timestamps_ms)


class LogAgainstListOfBatches(RuleBasedStateMachine):
    """Whatever happens, the log is a prefix of what was appended, and has all that was synced.

    What the broker keeps outside of the log is modelled with it: the recorded log start and
    recovery point, and state that follows from the batches (here: the list of base offsets).
    """

    @initialize()
    def begin(self) -> None:
        self.files = MemoryFiles()
        self.files.make_directory("/p-0")
        self.files.sync_directory("/")
        self.batches: list[Batch] = []
        self.begin_offset = 0
        self.start_offset = 0
        self.durable_end = 0
        self.recovery_point = 0
        self.has_leftovers = False
        self.epoch = 0
        self.observed: list[int] = []
        self.open()

    def open(self) -> None:
        self.observed = []
        # The writer thread of a process that ended is gone, with all it had.
        self.captures: deque[Capture] = deque()
        self.epoch += 1
        self.log = Log.open(
            self.files,
            "/p-0",
            SETTINGS,
            start_offset=Offset(self.start_offset),
            recovery_point=Offset(self.recovery_point),
            epoch_max=Epoch(self.epoch),
            on_batch=self.observe,
            load_snapshot=self.load,
            take_snapshot=lambda: json.dumps(self.observed).encode(),
        )

    def observe(self, header: BatchHeader) -> None:
        self.observed.append(header.base_offset)

    def load(self, snapshot: bytes) -> None:
        self.observed = json.loads(snapshot)

    @property
    def end_offset(self) -> int:
        return self.batches[-1].end_offset if self.batches else self.begin_offset

    def all_bytes(self, start: int, end: int) -> bytes:
        """The batches that a read from `start` to `end` gives, if nothing else limits it."""
        return b"".join(
            b.data for b in self.batches if b.end_offset > start and b.end_offset <= end
        )

    # What a broker does

    @rule(
        batches=st.lists(
            st.tuples(st.lists(st.integers(-1, 60), min_size=1, max_size=4), st.integers(0, 200)),
            min_size=1,
            max_size=3,
        )
    )
    def append(self, batches: Sequence[tuple[Sequence[int], int]]) -> None:
        made: list[Batch] = []
        for timestamps_ms, size in batches:
            base_offset = made[-1].end_offset if made else self.end_offset
            data = batch(
                base_offset,
                len(timestamps_ms),
                size=size,
                timestamps_ms=timestamps_ms,
                epoch=self.epoch,
            )
            made.append(Batch(base_offset, tuple(timestamps_ms), data))
        self.log.append(b"".join(b.data for b in made))
        self.batches += made
        # After the append, as the log asks for.
        self.observed += [b.base_offset for b in made]

    @rule(free_bytes=st.integers(0, 150))
    def append_to_a_full_disk(self, free_bytes: int) -> None:
        self.files.capacity_bytes = sum(self.files.sizes("/p-0").values()) + free_bytes
        base_offset = self.end_offset
        data = batch(base_offset, size=300, epoch=self.epoch)
        try:
            self.log.append(data)
        except OSError:
            pass
        else:
            # Over the file of a segment that is gone, where there is room.
            self.batches.append(Batch(base_offset, (1000 + base_offset,), data))
            self.observed.append(base_offset)
        self.files.capacity_bytes = None

    @rule()
    def begin_sync(self) -> None:
        self.captures.append(self.log.begin_sync())

    @precondition(lambda self: self.captures)
    @rule()
    def finish_a_sync(self) -> None:
        self.durable_end = self.captures.popleft().sync()

    @rule()
    def sync(self) -> None:
        self.begin_sync()
        while self.captures:
            self.finish_a_sync()

    @rule()
    def record_recovery_point(self) -> None:
        self.recovery_point = self.durable_end

    @rule(data=st.data(), run=st.booleans())
    def delete_before(self, data: st.DataObject, run: bool) -> None:
        offset = data.draw(st.integers(self.start_offset, self.end_offset))
        self.start_offset = offset
        removal = self.log.delete_before(Offset(offset))
        if run:
            removal.run()
        else:
            self.has_leftovers = True
        assert self.log.start_offset == offset

    @rule(retention_bytes=st.integers(0, 2000), data=st.data())
    def apply_retention(self, retention_bytes: int, data: st.DataObject) -> None:
        end_offset = Offset(data.draw(st.integers(self.start_offset, self.end_offset)))
        self.log.settings = LogSettings(
            segment_bytes=600, retention_bytes=retention_bytes, retention_ms=-1
        )
        size_bytes, start_offset = self.log.size_bytes, self.log.start_offset
        removal = self.log.delete_before(self.log.apply_retention(0, end_offset=end_offset))
        assert self.log.start_offset <= max(end_offset, self.start_offset)
        if self.log.start_offset > start_offset:
            assert self.log.size_bytes >= retention_bytes
            assert self.log.size_bytes < size_bytes
        self.start_offset = self.log.start_offset
        removal.run()
        self.log.settings = SETTINGS

    # What a replica does, and what happens to it

    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        offset = data.draw(st.integers(self.start_offset, self.end_offset))
        self.recovery_point = min(self.recovery_point, offset)
        self.sync()
        self.log.truncate(Offset(offset))
        self.forget_from(offset)
        self.durable_end = min(self.durable_end, self.end_offset)
        self.recovery_point = min(self.recovery_point, self.end_offset)
        self.start_offset = min(self.start_offset, self.end_offset)

    def forget_from(self, offset: int) -> None:
        if offset < self.end_offset:
            self.batches = [b for b in self.batches if b.end_offset <= offset]
            self.observed = [base for base in self.observed if base < self.end_offset]

    @rule(offset=st.integers(0, 1000))
    def reset(self, offset: int) -> None:
        self.recovery_point = 0
        self.sync()
        self.log.reset(Offset(offset))
        self.batches, self.observed = [], []
        self.begin_offset = self.start_offset = self.durable_end = offset

    @rule(seed=st.integers(0, 2**32))
    def crash(self, seed: int) -> None:
        self.files = self.files.after_crash(Random(seed))
        self.open()
        end_offset = self.log.end_offset
        assert end_offset >= self.durable_end
        self.forget_from(end_offset)
        if end_offset > self.end_offset:
            # A start that was recorded, of records that were lost.
            assert end_offset == self.start_offset
            self.batches, self.begin_offset = [], end_offset
        assert self.end_offset == end_offset
        # What was recovered is durable.
        self.durable_end = end_offset

    @rule()
    def kill(self) -> None:
        self.files = self.files.after_kill()
        self.open()
        assert self.log.end_offset == self.end_offset
        self.durable_end = self.end_offset

    @rule()
    def restart(self) -> None:
        while self.captures:
            self.finish_a_sync()
        self.recovery_point = self.durable_end = self.log.close()
        self.open()
        # What was to be removed may lie behind a log that began anew before it.
        assert self.log.recovery.clean or self.has_leftovers
        assert self.log.recovery.checked_batches == 0
        self.has_leftovers = False

    # What must hold

    @invariant()
    def the_offsets_are_those_of_the_model(self) -> None:
        assert self.log.start_offset == self.start_offset
        assert self.log.end_offset == self.end_offset

    @invariant()
    def the_observed_batches_are_those_of_the_log(self) -> None:
        seen = [base for base in self.observed if base >= self.start_offset]
        assert seen == [b.base_offset for b in self.batches if b.base_offset >= self.start_offset]

    @rule(data=st.data(), bytes_max=st.integers(0, 1500), at_least_one=st.booleans())
    def read(self, data: st.DataObject, bytes_max: int, at_least_one: bool) -> None:
        offset = data.draw(st.integers(self.start_offset, self.end_offset))
        end = data.draw(st.integers(self.start_offset, self.end_offset))
        found = self.log.read(
            Offset(offset), bytes_max=bytes_max, end_offset=Offset(end), at_least_one=at_least_one
        )
        got = found.read()
        batches = [b for b in self.batches if offset < b.end_offset <= end and offset < end]
        wanted = [b.data for b in batches]
        assert b"".join(wanted).startswith(got)
        if wanted and at_least_one:
            assert got
        if len(got) > bytes_max:
            assert at_least_one
            assert got == wanted[0]
        whole = [b"".join(wanted[:count]) for count in range(len(wanted) + 1)]
        assert got in whole
        if got:
            assert found.end_offset in (batches[whole.index(got) - 1].end_offset, end)

    @rule()
    def read_everything(self) -> None:
        got, offset = b"", Offset(self.start_offset)
        while part := self.log.read(
            offset, bytes_max=700, end_offset=Offset(self.end_offset)
        ).read():
            got += part
            offset = Offset(next(b.end_offset for b in self.batches if part.endswith(b.data)))
        assert got == self.all_bytes(self.start_offset, self.end_offset)

    def records(self, end: int) -> list[tuple[int, int]]:
        return [
            (timestamp_ms, b.base_offset + at)
            for b in self.batches
            for at, timestamp_ms in enumerate(b.timestamps_ms)
            if self.start_offset <= b.base_offset + at < end
        ]

    @rule(timestamp_ms=st.integers(0, 61), data=st.data())
    def find_timestamp(self, timestamp_ms: int, data: st.DataObject) -> None:
        end = data.draw(st.integers(self.start_offset, self.end_offset))
        found = find_timestamp(self.log, timestamp_ms, end_offset=Offset(end))
        assert found == next((r for r in self.records(end) if r[0] >= timestamp_ms), None)

    @rule(data=st.data())
    def max_timestamp(self, data: st.DataObject) -> None:
        end = data.draw(st.integers(self.start_offset, self.end_offset))
        stamped = [record for record in self.records(end) if record[0] >= 0]
        largest = max((timestamp_ms for timestamp_ms, _ in stamped), default=None)
        assert max_timestamp(self.log, end_offset=Offset(end)) == next(
            (record for record in stamped if record[0] == largest), None
        )

    @precondition(lambda self: len(self.batches) > 2)
    @rule()
    def index_lookups_never_overshoot(self) -> None:
        for segment in self.log._segments:
            for b in self.batches:
                if segment.base_offset <= b.base_offset < segment.end_offset:
                    for offset in (b.base_offset, b.end_offset - 1):
                        entry = segment.index.floor(Offset(offset))
                        assert entry is None or entry.position <= segment.position_of(
                            Offset(offset)
                        )
                        assert entry is None or entry.last_offset <= offset


TestLogAgainstListOfBatches = LogAgainstListOfBatches.TestCase
TestLogAgainstListOfBatches.settings = settings(
    max_examples=60, stateful_step_count=30, deadline=None
)
