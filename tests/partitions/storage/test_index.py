"""The indexes: Kafka's bytes, and lookups that never overshoot."""

from bisect import bisect_right
from itertools import accumulate
from typing import TypeAlias

from hypothesis import given
from hypothesis import strategies as st

from tidemark.partitions.storage.index import Entry, GrowingIndex, TimeEntry
from tidemark.partitions.storage.stored_index import StoredIndex
from tidemark.protocol.records.header import LOG_OVERHEAD, BatchHeader
from tidemark.protocol.types import Epoch, Offset
from tidemark.testing.memory_files import MemoryFile, MemoryFiles

Index: TypeAlias = GrowingIndex | StoredIndex
Batches = list[tuple[int, int, int]]
"""Records, bytes and largest timestamp of each."""

batches_strategy = st.lists(
    st.tuples(st.integers(1, 50), st.integers(61, 300), st.integers(-1, 30)), max_size=40
)


def indexed(batches: Batches, base_offset: int = 100, interval_bytes: int = 200) -> GrowingIndex:
    index = GrowingIndex(Offset(base_offset), interval_bytes)
    position, end_offset = 0, base_offset
    for records, size_bytes, timestamp_ms in batches:
        end_offset += records
        index.add(position, size_bytes, Offset(end_offset - 1), timestamp_ms)
        position += size_bytes
    return index


def indexed_in_runs(batches: Batches, run_lengths: list[int]) -> GrowingIndex:
    """As `indexed`, but what is behind each other is added in runs of these lengths, then one."""
    index = GrowingIndex(Offset(100), 200)
    position, offset, at = 0, Offset(100), 0
    while at < len(batches):
        length = run_lengths.pop() if run_lengths else 1
        run, at = batches[at : at + length], at + length
        headers = [
            BatchHeader.open(
                base_offset=Offset(-1),  # not looked at: it is placed when it is written
                epoch=Epoch(0),
                attributes=0,
                base_timestamp=timestamp_ms,
                max_timestamp=timestamp_ms,
                producer_id=-1,
                producer_epoch=-1,
                base_sequence=-1,
                record_count=records,
            )._replace(batch_length=size_bytes - LOG_OVERHEAD)
            for records, size_bytes, timestamp_ms in run
        ]
        index.add_run(position, offset, headers)
        position += sum(header.size_bytes for header in headers)
        offset = Offset(offset + sum(header.record_count for header in headers))
    return index


def stored(index: GrowingIndex) -> StoredIndex:
    files = MemoryFiles()
    files.create("/index").pwrite(index.encode(), 0)
    files.create("/times").pwrite(index.encode_times(), 0)

    def open_index() -> MemoryFile:
        return MemoryFile(files, files._inode("/index"), "/index")

    def open_times() -> MemoryFile:
        return MemoryFile(files, files._inode("/times"), "/times")

    return StoredIndex(index.base_offset, open_index, open_times)


def test_the_worked_example_of_the_format() -> None:
    index = indexed([(5, 600, 7), (5, 600, 9), (5, 600, 8)], interval_bytes=1000)
    assert index.encode() == bytes.fromhex("0000000e 000004b0")
    # Up to offset 114 the largest timestamp is 9, of the batch that ends at 109.
    assert index.encode_times() == bytes.fromhex("0000000000000009 00000009")


@given(batches=batches_strategy, run_lengths=st.lists(st.integers(1, 9), max_size=20))
def test_a_run_is_indexed_as_its_batches_one_by_one(
    batches: Batches, run_lengths: list[int]
) -> None:
    alone, in_runs = indexed(batches), indexed_in_runs(batches, run_lengths)
    assert in_runs.encode() == alone.encode()
    assert in_runs.encode_times() == alone.encode_times()
    assert in_runs.largest == alone.largest


def test_the_last_time_entry_is_for_the_whole_segment() -> None:
    index = indexed([(1, 600, 5), (1, 600, 6), (1, 600, 7)], interval_bytes=500)
    assert index.encode() == bytes.fromhex("00000001 00000258 00000002 000004b0")
    assert index.encode_times() == bytes.fromhex(
        "0000000000000006 00000001 0000000000000007 00000002"
    )
    short = indexed([(1, 600, 5)])
    assert (short.encode(), short.encode_times()) == (
        b"",
        bytes.fromhex("0000000000000005 00000000"),
    )


def test_records_without_timestamps_have_no_time_entries() -> None:
    index = indexed([(1, 600, -1)] * 3)
    assert (index.largest, index.encode_times()) == (None, b"")


def test_the_largest_of_all_timestamps_is_known_to_an_index_that_is_read() -> None:
    index = indexed([(1, 600, 5), (1, 600, 2**63 - 1), (1, 600, 6)], interval_bytes=500)
    read = GrowingIndex.decode(index.base_offset, 500, index.encode(), index.encode_times())
    assert index.largest == (2**63 - 1, 101)
    assert read.largest == stored(index).largest == index.largest
    read.rewind(Offset(103))
    assert read.largest == index.largest


@given(batches_strategy)
def test_an_offset_lookup_never_overshoots(batches: Batches) -> None:
    growing = indexed(batches)
    ends = [100 + end for end in accumulate(records for records, _, _ in batches)]
    positions = [0, *accumulate(size for _, size, _ in batches)]
    for index in (growing, stored(growing)):
        for offset in range(100, 100 + sum(records for records, _, _ in batches)):
            entry = index.floor(Offset(offset))
            true_position = positions[bisect_right(ends, offset)]
            if entry is None:
                continue
            assert entry.last_offset <= offset
            assert entry.position <= true_position
            # And it is of use: not much more than an interval lies between.
            assert true_position - entry.position <= 200 + 2 * 300


@given(batches_strategy, st.integers(0, 12_000))
def test_a_position_lookup_gives_the_start_of_a_batch(batches: Batches, position: int) -> None:
    growing = indexed(batches)
    starts = [0, *accumulate(size for _, size, _ in batches)]
    for index in (growing, stored(growing)):
        entry = index.floor_position(position)
        if entry is not None:
            assert entry.position <= position
            assert entry.position in starts


@given(batches_strategy, st.integers(-1, 31))
def test_a_time_lookup_skips_only_what_is_earlier(batches: Batches, timestamp_ms: int) -> None:
    growing = indexed(batches)
    for index in (growing, stored(growing)):
        entry = index.earlier(timestamp_ms)
        if entry is None:
            continue
        end_offset = 100
        for records, _, largest in batches:
            end_offset += records
            if end_offset - 1 <= entry.offset:
                assert largest <= entry.timestamp_ms < timestamp_ms


@given(batches_strategy)
def test_the_largest_timestamp_is_that_of_the_first_batch_that_has_it(batches: Batches) -> None:
    growing = indexed(batches)
    ends = [100 + end for end in accumulate(records for records, _, _ in batches)]
    stamps = [timestamp_ms for _, _, timestamp_ms in batches]
    largest = max(stamps, default=-1)
    wanted = None if largest < 0 else TimeEntry(largest, Offset(ends[stamps.index(largest)] - 1))
    assert growing.largest == wanted
    assert stored(growing).largest == wanted


@given(batches_strategy, st.data())
def test_an_index_that_was_rewound_is_as_if_it_had_never_known_more(
    batches: Batches, data: st.DataObject
) -> None:
    kept = data.draw(st.integers(0, len(batches)))
    end_offset = Offset(100 + sum(records for records, _, _ in batches[:kept]))
    for index in (
        indexed(batches),
        GrowingIndex.decode(
            Offset(100), 200, indexed(batches).encode(), indexed(batches).encode_times()
        ),
    ):
        start = index.rewind(end_offset)
        position, offset = 0, 100
        for records, size_bytes, timestamp_ms in batches[:kept]:
            offset += records
            if position >= start:
                index.add(position, size_bytes, Offset(offset - 1), timestamp_ms)
            position += size_bytes
        wanted = indexed(batches[:kept])
        assert (index.encode(), index.encode_times()) == (wanted.encode(), wanted.encode_times())
        assert index.largest == wanted.largest


def test_an_index_is_the_same_from_memory_and_from_its_files() -> None:
    growing = indexed([(3, 150, timestamp_ms) for timestamp_ms in (5, 3, 9, 9, 1, 12, 4)])
    files = stored(growing)
    for offset in range(95, 130):
        assert growing.floor(Offset(offset)) == files.floor(Offset(offset))
        assert growing.largest_before(Offset(offset)) == files.largest_before(Offset(offset))
    assert growing.floor(Offset(1000)) == Entry(Offset(120), 900)
