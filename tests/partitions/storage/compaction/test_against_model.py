"""Any log, compacted at any moments, against what a reader and a coordinator made of all of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.partitions.storage.compaction.keyed import (
    AT_ONCE,
    DIRECTORY,
    NOW_MS,
    SETTINGS,
    batches,
    compact,
    keyed_batch,
    marker,
    new_log,
    seal,
)
from tidemark.partitions.replication.producer_state import ProducerState
from tidemark.partitions.storage.compaction.settings import CompactionLimits
from tidemark.partitions.storage.log import Log
from tidemark.partitions.storage.verify import verify
from tidemark.protocol.records.compression import Compression
from tidemark.protocol.records.control import read_marker
from tidemark.protocol.records.header import BatchHeader
from tidemark.protocol.records.records import decode_batch
from tidemark.protocol.types import Offset
from tidemark.testing.memory_files import MemoryFiles

PRODUCERS = (7, 8)
LONG = b"k" * 40
KEYS = st.sampled_from([b"a", b"b", b"c", LONG + b"1", LONG + b"2"])
PAIRS = st.lists(st.tuples(KEYS, st.none() | st.binary(max_size=3)), min_size=1, max_size=4)
WRITES = st.tuples(
    st.just("write"), PAIRS, st.sampled_from([-1, *PRODUCERS]), st.sampled_from(Compression)
)
IN_TRANSACTION = st.tuples(st.just("in transaction"), PAIRS, st.sampled_from(PRODUCERS))
ENDS = st.tuples(st.just("end"), st.sampled_from(PRODUCERS), st.booleans())
COMPACTIONS = st.tuples(st.just("compact"), st.integers(0, 3000), st.integers(1, 8))
OTHERS = st.sampled_from([("seal",), ("epoch",), ("restart",)])
STEPS = st.lists(WRITES | IN_TRANSACTION | ENDS | COMPACTIONS | OTHERS, min_size=10, max_size=40)


@dataclass
class Written:
    """A log and those who write to it."""

    files: MemoryFiles
    log: Log
    epoch: int = 1
    sequences: dict[int, int] = field(default_factory=lambda: dict.fromkeys(PRODUCERS, 0))
    opened: set[int] = field(default_factory=set)

    def take(self, step: tuple[object, ...]) -> None:
        match step:
            case ("write", list(pairs), int(producer), Compression() as codec):
                # A producer of transactions writes in them only.
                if producer not in self.opened:
                    self._write(pairs, producer, codec, is_transactional=False)
            case ("in transaction", list(pairs), int(producer)):
                self.opened.add(producer)
                self._write(pairs, producer, Compression.NONE, is_transactional=True)
            case ("end", int(producer), bool(commits)):
                if producer in self.opened:
                    self.opened.remove(producer)
                    self.log.append(marker(self.log, producer, commits=commits, epoch=self.epoch))
            case ("compact", int(now_ms), int(keys)):
                seal(self.log)
                compact(
                    self.files,
                    self.log,
                    now_ms=NOW_MS + now_ms,
                    producers=PRODUCERS,
                    limits=CompactionLimits(map_bytes_max=keys * 256),
                )
            case ("seal",):
                seal(self.log)
            case ("epoch",):
                self.epoch += 1
            case ("restart",):
                end = self.log.close()
                self.log = Log.open(self.files, DIRECTORY, SETTINGS, recovery_point=end)

    def _write(
        self,
        pairs: list[tuple[bytes | None, bytes | None]],
        producer: int,
        codec: Compression,
        *,
        is_transactional: bool,
    ) -> None:
        sequence = -1
        if producer >= 0:
            sequence = self.sequences[producer]
            self.sequences[producer] += len(pairs)
        self.log.append(
            keyed_batch(
                self.log,
                pairs,
                epoch=self.epoch,
                compression=codec,
                producer=(producer, 0 if producer >= 0 else -1, sequence),
                is_transactional=is_transactional,
            )
        )


def state_at_the_end(log: Log) -> dict[bytes, bytes]:
    """What a reader has who sees only what is committed, and starts at the beginning."""
    undecided: dict[int, list[tuple[int, bytes, bytes | None]]] = {}
    rows: list[tuple[int, bytes, bytes | None]] = []
    for header, data in batches(log):
        if header.is_control:
            ends = read_marker(data, header)
            taken = undecided.pop(header.producer_id, [])
            rows += taken if ends is not None and ends.is_commit else []
            continue
        these = [(r.offset, r.key or b"", r.value) for r in decode_batch(data, header)]
        if header.is_transactional:
            undecided.setdefault(header.producer_id, []).extend(these)
        else:
            rows += these
    found = {key: value for _, key, value in sorted(rows, key=lambda row: row[0])}
    return {key: value for key, value in found.items() if value is not None}


def known_of_producers(log: Log) -> tuple[object, ...]:
    """What the next batches of the producers are held against, and how far the log is stable."""
    state = ProducerState()

    def on_control(header: BatchHeader, batch: bytes) -> None:
        state.on_control(header, batch)

    for header, data in batches(log):
        if header.is_control:
            on_control(header, data)
        else:
            state.on_batch(header)
    known = {
        producer: (entry.epoch, entry.next_sequence) for producer, entry in state.table.producers
    }
    return (known, state.table.transactions.last_stable_offset(log.end_offset))


@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_a_compaction_changes_nothing_that_matters(steps: list[tuple[object, ...]]) -> None:
    left, whole = Written(*new_log()), Written(*new_log())
    for step in steps:
        left.take(step)
        if step[0] == "compact":
            seal(whole.log)
        elif step[0] != "restart":
            whole.take(step)
    assert left.log.end_offset == whole.log.end_offset
    assert state_at_the_end(left.log) == state_at_the_end(whole.log)
    assert known_of_producers(left.log) == known_of_producers(whole.log)
    headers = {header.base_offset: header for header, _ in batches(whole.log)}
    for header, _ in batches(left.log):
        first = headers[header.base_offset]
        assert header.partition_leader_epoch == first.partition_leader_epoch
    left.log.sync()
    assert verify(left.files, DIRECTORY).problems == []


@settings(max_examples=30, deadline=None)
@given(STEPS)
def test_at_the_end_no_key_stands_twice_below_where_it_is_clean(
    steps: list[tuple[object, ...]],
) -> None:
    left = Written(*new_log())
    for step in [*steps, ("seal",), ("compact", 0, 1000)]:
        left.take(step)
    seen: set[bytes] = set()
    for header, data in batches(left.log):
        if header.base_offset >= left.log.cleaned_to:
            break
        if not header.is_control:
            keys = [record.key or b"" for record in decode_batch(data, header)]
            assert not seen & set(keys)
            assert len(set(keys)) == len(keys)
            seen |= set(keys)
    assert AT_ONCE.min_cleanable_dirty_ratio == 0.0
    assert Offset(0) <= left.log.cleaned_to <= left.log.end_offset
