"""What a partition knows of transactions, carried along, is what its log says: whatever happens.

Kafka keeps the aborted transactions in files beside the segments, and has had them wrong after a
truncation, after a start moved, and after a crash between two of its files.
"""

from random import Random
from typing import NamedTuple

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tidemark.partitions.replication.log_start import StartMove, planned
from tidemark.partitions.replication.producer_state import EpochFrom, ProducerState
from tidemark.partitions.storage.log import Log
from tidemark.partitions.storage.settings import LogSettings
from tidemark.protocol.errors import StorageError
from tidemark.protocol.records.control import Marker, encode_marker
from tidemark.protocol.records.header import place, read_header
from tidemark.protocol.records.records import Record, encode_batch
from tidemark.protocol.types import Epoch, Offset, ProducerId
from tidemark.testing.memory_files import MemoryFiles

# Two or three batches a segment.
SETTINGS = LogSettings(segment_bytes=250, index_interval_bytes=100, retention_ms=-1)
PRODUCERS = st.integers(1, 3)
EPOCHS = [EpochFrom(Epoch(1), Offset(0))]


class Entry(NamedTuple):
    """One batch, of one offset."""

    producer: int
    kind: str
    """`plain`, `data`, `commit` or `abort`."""
    data: bytes


class Span(NamedTuple):
    """A transaction: its producer, its first offset, and its marker's."""

    producer: int
    first: int
    marker: int | None
    is_commit: bool


def encoded(offset: int, producer: int, kind: str) -> bytes:
    if kind in ("commit", "abort"):
        marker = Marker(is_commit=kind == "commit", coordinator_epoch=0)
        data = bytearray(encode_marker(ProducerId(producer), 0, marker, timestamp_ms=1))
    else:
        data = bytearray(
            encode_batch(
                [Record(value=b"v" * 20, timestamp_ms=1)],
                producer_id=-1 if kind == "plain" else producer,
                producer_epoch=0,
                base_sequence=0,
                is_transactional=kind == "data",
            )
        )
    place(data, 0, base_offset=Offset(offset), epoch=Epoch(1))
    return bytes(data)


def spans_of(entries: list[Entry]) -> list[Span]:
    """All transactions of a log, the plainest way."""
    opened: dict[int, int] = {}
    spans = []
    for offset, (producer, kind, _) in enumerate(entries):
        if kind == "data":
            opened.setdefault(producer, offset)
        elif kind != "plain" and producer in opened:
            spans.append(Span(producer, opened.pop(producer), offset, kind == "commit"))
    return spans + [Span(producer, first, None, False) for producer, first in opened.items()]


class TransactionsAgainstTheLog(RuleBasedStateMachine):
    """`entries` is all that was ever in the log and is not cut; the log may have lost its start."""

    @initialize()
    def begin(self) -> None:
        self.files = MemoryFiles()
        self.files.make_directory("/p-0")
        self.files.sync_directory("/")
        self.entries: list[Entry] = []
        self.start = 0
        self.committed = 0
        self.recovery_point = 0
        self.waiting: StartMove | None = None
        self.open()

    def open(self) -> None:
        self.producers = ProducerState()
        self.log = Log.open(
            self.files,
            "/p-0",
            SETTINGS,
            start_offset=Offset(self.start),
            recovery_point=Offset(self.recovery_point),
            on_batch=self.producers.on_batch,
            on_control=self.producers.on_control,
            load_snapshot=self.producers.load,
            take_snapshot=self.producers.take,
        )
        self.producers.start_at(self.log.start_offset)
        self.waiting = None
        del self.entries[self.log.end_offset :]

    @rule(
        steps=st.lists(
            st.tuples(PRODUCERS, st.sampled_from(["plain", "data", "data", "commit", "abort"])),
            min_size=1,
            max_size=4,
        )
    )
    def append(self, steps: list[tuple[int, str]]) -> None:
        run = []
        for producer, kind in steps:
            run.append(Entry(producer, kind, encoded(len(self.entries), producer, kind)))
            self.entries.append(run[-1])
        data = b"".join(entry.data for entry in run)
        for entry in run:
            self.log.append(entry.data)
            self.producers.on_run(entry.data, 1)
        assert len(data) == sum(len(entry.data) for entry in run)

    @rule(data=st.data())
    def commit(self, data: st.DataObject) -> None:
        """As `group_replica` does; what is committed survives whatever happens here."""
        self.sync()
        self.committed = data.draw(st.integers(self.committed, len(self.entries)))
        self.producers.table.transactions.settle(Offset(self.committed))
        self.move_if_due()

    @rule(data=st.data())
    def move_start(self, data: st.DataObject) -> None:
        to = Offset(data.draw(st.integers(self.start, self.committed)))
        if to > self.start:
            self.waiting = planned(self.log, self.producers, EPOCHS, to, self.waiting)
            self.move_if_due()

    def move_if_due(self) -> None:
        move = self.waiting
        if move is not None and self.committed >= move.once_committed:
            self.waiting = None
            removal = self.log.delete_before(move.to, move.snapshot)
            self.producers.start_at(self.log.start_offset)
            # The journal has the snapshot, and puts it there again after a crash.
            self.sync()
            self.start = self.log.start_offset
            removal.run()

    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        offset = data.draw(st.integers(self.committed, len(self.entries)))
        if offset < len(self.entries):
            self.recovery_point = min(self.recovery_point, offset)
            self.log.truncate(Offset(offset))
            self.producers.rebuild(self.log)
            self.producers.end_at(self.log.end_offset)
            del self.entries[offset:]
            if self.waiting is not None:
                to, self.waiting = self.waiting.to, None
                self.waiting = planned(self.log, self.producers, EPOCHS, to, None)

    @rule()
    def sync(self) -> None:
        self.log.sync()

    @rule()
    def checkpoint(self) -> None:
        self.recovery_point = self.log.sync()

    @rule()
    def restart(self) -> None:
        self.recovery_point = self.log.close()
        self.open()

    @rule()
    def kill(self) -> None:
        self.files = self.files.after_kill()
        self.open()

    @rule(seed=st.integers(0, 2**32))
    def crash(self, seed: int) -> None:
        self.files = self.files.after_crash(Random(seed))
        self.open()
        assert self.log.end_offset >= self.committed

    @rule(data=st.data())
    def start_as_another_replica_began(self, data: st.DataObject) -> None:
        """A follower that begins where this log does, and gets what is committed and more."""
        end = data.draw(st.integers(self.committed, len(self.entries)))
        snapshot = self.log.snapshot_at_start()
        self.log.reset(Offset(self.start), snapshot)
        self.producers.rebuild(self.log)
        self.recovery_point = 0
        del self.entries[end:]
        for entry in self.entries[self.start :]:
            self.log.append(entry.data)
            self.producers.on_run(entry.data, 1)
        self.waiting = None
        self.sync()

    @invariant()
    def what_is_open_is_what_has_no_marker(self) -> None:
        opened = self.producers.table.transactions.opened
        wanted = {
            span.producer: span.first for span in spans_of(self.entries) if span.marker is None
        }
        assert {producer: each.first_offset for producer, each in opened.items()} == wanted
        assert list(opened) == sorted(opened, key=lambda producer: wanted[producer])

    @invariant()
    def what_is_aborted_is_all_that_a_reader_may_come_across(self) -> None:
        transactions = self.producers.table.transactions
        wanted = [
            span
            for span in spans_of(self.entries)
            if span.marker is not None and not span.is_commit and span.marker >= self.start
        ]
        assert transactions.aborted_count == len(wanted)
        for start in range(self.start, len(self.entries) + 1):
            for end in range(start, len(self.entries) + 1):
                assert {
                    (over.producer_id, over.first_offset, over.marker_offset)
                    for over in transactions.aborted(Offset(start), Offset(end))
                } == {
                    span[:3] for span in wanted if (span.marker or 0) >= start and span.first < end
                }

    @invariant()
    def nothing_undecided_is_stable(self) -> None:
        transactions = self.producers.table.transactions
        undecided = [
            span.first
            for span in spans_of(self.entries)
            if span.marker is None or span.marker >= self.committed
        ]
        stable = transactions.last_stable_offset(Offset(self.committed))
        assert stable == min([self.committed, *undecided])


TestTransactionsAgainstTheLog = TransactionsAgainstTheLog.TestCase
TestTransactionsAgainstTheLog.settings = settings(
    max_examples=60, stateful_step_count=25, deadline=None
)


def test_a_marker_whose_bytes_are_damaged_is_not_guessed() -> None:
    data = bytearray(encoded(0, 1, "abort"))
    data[-8] ^= 1
    with pytest.raises(StorageError, match="a marker at offset 0: its CRC"):
        ProducerState().on_control(read_header(data), bytes(data))
