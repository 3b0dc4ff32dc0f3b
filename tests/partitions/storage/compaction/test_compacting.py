"""What a compaction leaves of a log, and how it leaves it."""

from __future__ import annotations

import pytest

from tests.partitions.storage.compaction.keyed import (
    DIRECTORY,
    batches,
    compact,
    keyed_batch,
    new_log,
    put,
    rows,
    seal,
)
from tests.partitions.storage.searches import find_timestamp, max_timestamp
from tidemark.partitions.storage.verify import verify
from tidemark.protocol.errors import StorageError
from tidemark.protocol.records.compression import Compression
from tidemark.protocol.records.gaps import is_gap
from tidemark.protocol.records.header import HEADER_BYTES, build_batch, read_header
from tidemark.protocol.records.records import Record, decode_batch, encode_section
from tidemark.protocol.types import Offset

LAST_MS = 2**63 - 1


def test_of_each_key_the_last_record_stays_where_it_was() -> None:
    files, log = new_log()
    put(log, (b"a", b"1"), (b"b", b"1"), (b"a", b"2"))
    put(log, (b"c", b"1"))
    put(log, (b"b", b"2"), (b"d", b"1"))
    seal(log)
    compact(files, log)
    assert rows(log) == [(2, b"a", b"2"), (3, b"c", b"1"), (4, b"b", b"2"), (5, b"d", b"1")]
    assert verify(files, DIRECTORY).is_sound


@pytest.mark.parametrize("value", [b"1", None])
@pytest.mark.parametrize("base_ms", [LAST_MS, -LAST_MS, 1000])
@pytest.mark.parametrize("delta_ms", [LAST_MS, -LAST_MS, 0])
def test_a_time_that_cannot_be_keeps_nothing_from_being_compacted(
    base_ms: int, delta_ms: int, value: bytes | None
) -> None:
    files, log = new_log()
    pairs = [(b"a", b"1"), (b"b", value)]
    records = [Record(key=key, value=value, timestamp_ms=delta_ms) for key, value in pairs]
    section = encode_section(records, base_timestamp=0)
    header = read_header(keyed_batch(log, pairs))
    log.append(build_batch(section, header._replace(base_timestamp=base_ms, max_timestamp=-1)))
    put(log, (b"a", b"2"))
    seal(log)
    compact(files, log)
    assert rows(log) == [(1, b"b", value), (2, b"a", b"2")]


def test_the_segment_that_is_written_to_is_left_alone() -> None:
    files, log = new_log()
    put(log, (b"a", b"1"))
    seal(log)
    put(log, (b"a", b"2"))
    compact(files, log)
    assert rows(log) == [(0, b"a", b"1"), (1, b"a", b"2")]


def test_what_is_not_committed_is_left_alone() -> None:
    files, log = new_log()
    put(log, (b"a", b"1"), (b"a", b"2"))
    seal(log)
    put(log, (b"a", b"3"))
    seal(log)
    assert compact(files, log, end_offset=1) is None
    compact(files, log, end_offset=2)
    assert rows(log) == [(1, b"a", b"2"), (2, b"a", b"3")]


def test_what_is_not_synced_is_left_alone() -> None:
    files, log = new_log()
    put(log, (b"a", b"1"), (b"a", b"2"))
    log._roll()  # and nothing is synced
    assert compact(files, log) is None
    log.sync()
    assert compact(files, log) is not None


def test_batches_of_which_nothing_is_left_become_one_gap() -> None:
    files, log = new_log()
    put(log, (b"first", b"1"))
    for number in range(9):
        put(log, (b"a", b"%d" % number))
    seal(log)
    compact(files, log)
    first, gap, last = batches(log)
    assert is_gap(gap[0])
    assert len(gap[1]) == HEADER_BYTES
    assert (gap[0].base_offset, gap[0].next_offset) == (1, 9)
    assert (first[0].record_count, last[0].record_count) == (1, 1)


def test_a_gap_ends_with_its_leader_epoch() -> None:
    files, log = new_log()
    for epoch in (1, 1, 3, 3, 4):
        log.append(keyed_batch(log, [(b"a", b"x")], epoch=epoch))
    seal(log)
    compact(files, log)
    assert [(h.partition_leader_epoch, h.base_offset, h.record_count) for h, _ in batches(log)] == [
        (1, 0, 0),
        (3, 2, 0),
        (4, 4, 1),
    ]
    assert verify(files, DIRECTORY).is_sound


def test_gaps_grow_together() -> None:
    files, log = new_log()
    for key in (b"a", b"b", b"a", b"c"):
        put(log, (key, b"1"))
    seal(log)
    compact(files, log)
    put(log, (b"b", b"2"))
    seal(log)
    compact(files, log)
    gap, *_ = batches(log)
    assert (gap[0].base_offset, gap[0].next_offset) == (0, 2)


def test_what_is_left_of_a_batch_has_its_place_sequences_and_producer() -> None:
    files, log = new_log()
    headers = (("h", b"v"), ("none", None))
    pairs = [(b"a", b"1"), (b"b", b"1"), (b"a", b"2"), (b"c", b"1")]
    before = keyed_batch(log, pairs, epoch=5, producer=(7, 2, 40), headers=headers)
    log.append(before)
    put(log, (b"c", b"2"))
    seal(log)
    compact(files, log)
    (header, data), _ = batches(log)
    assert (header.base_offset, header.last_offset_delta, header.record_count) == (0, 3, 2)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 2, 40)
    assert (header.partition_leader_epoch, header.last_sequence) == (5, 43)
    left = decode_batch(data, header)
    assert [(r.offset, r.key, r.timestamp_ms, r.headers) for r in left] == [
        (1, b"b", 1001, headers),
        (2, b"a", 1002, headers),
    ]
    assert header.max_timestamp == 1002


@pytest.mark.parametrize("codec", Compression)
def test_what_is_left_is_compressed_as_it_was(codec: Compression) -> None:
    files, log = new_log()
    pairs = [(b"a", b"1" * 50), (b"b", b"2" * 50), (b"a", b"3" * 50)]
    log.append(keyed_batch(log, pairs, compression=codec))
    seal(log)
    compact(files, log)
    ((header, _),) = batches(log)
    assert header.compression is codec
    assert rows(log) == [(1, b"b", b"2" * 50), (2, b"a", b"3" * 50)]


def test_a_batch_that_stays_whole_stays_byte_for_byte() -> None:
    files, log = new_log()
    data = keyed_batch(log, [(b"x", b"1"), (b"y", b"1")], compression=Compression.ZSTD)
    log.append(data)
    put(log, (b"a", b"1"), (b"a", b"2"))
    seal(log)
    compact(files, log)
    assert batches(log)[0][1] == data


# What has no key, and what cannot be read


def test_records_without_a_key_stay() -> None:
    files, log = new_log()
    put(log, (None, b"1"), (b"a", b"1"), (None, b"2"), (b"a", b"2"))
    seal(log)
    compact(files, log)
    assert rows(log) == [(0, None, b"1"), (2, None, b"2"), (3, b"a", b"2")]


def test_long_keys_are_told_apart() -> None:
    files, log = new_log()
    long, other = b"k" * 100, b"k" * 99 + b"l"
    put(log, (long, b"1"), (other, b"1"), (long, b"2"))
    seal(log)
    compact(files, log)
    assert rows(log) == [(1, other, b"1"), (2, long, b"2")]


def test_a_batch_that_is_not_sound_stops_the_run_and_changes_nothing() -> None:
    files, log = new_log()
    for _ in range(4):
        put(log, (b"a", b"1"))
    seal(log)
    before = files.sizes(DIRECTORY)
    file = files.open(f"{DIRECTORY}/{0:020d}.log")
    file.pwrite(b"\xff", 100)
    with pytest.raises(StorageError, match=r"0\.log is corrupt at byte 70: its CRC"):
        compact(files, log)
    assert files.sizes(DIRECTORY) == before


def test_a_batch_whose_records_cannot_be_read_stays() -> None:
    files, log = new_log()
    put(log, (b"a", b"1"))
    good = keyed_batch(log, [(b"a", b"2")])
    bad = bytearray(good)
    bad[HEADER_BYTES] = 0x7F  # the length of its one record
    from tidemark.protocol.records.header import seal as seal_batch

    seal_batch(bad, 0)
    log.append(bad)
    seal(log)
    tally = compact(files, log)
    assert tally is not None
    assert tally.unreadable_batches == 1
    assert [data for _, data in batches(log)][1] == bad
    assert batches(log)[0][0].record_count == 1  # nobody knows that it was overwritten


# Beside it


def test_a_reader_keeps_what_it_holds() -> None:
    files, log = new_log()
    put(log, (b"a", b"1"))
    put(log, (b"a", b"2"))
    seal(log)
    held = log.read(Offset(0), bytes_max=1000, end_offset=log.end_offset)
    before = held.read()
    compact(files, log)
    assert held.read() == before
    assert log.read(Offset(0), bytes_max=1000, end_offset=log.end_offset).read() != before


def test_times_are_found_in_what_is_left() -> None:
    files, log = new_log()
    for number in range(10):
        pairs = [(b"%d" % (number % 3), b"x")]
        log.append(keyed_batch(log, pairs, timestamp_ms=1000 + 10 * number))
    seal(log)
    compact(files, log)
    found = find_timestamp(log, 1015, end_offset=log.end_offset)
    assert found is not None
    assert found == (1070, 7)
    largest = max_timestamp(log, end_offset=log.end_offset)
    assert largest is not None
    assert largest == (1090, 9)


def test_the_time_of_a_batch_without_its_records_hides_no_other() -> None:
    files, log = new_log()
    log.append(keyed_batch(log, [(b"a", b"1")], timestamp_ms=5000, producer=(7, 0, 0)))
    log.append(keyed_batch(log, [(b"a", b"2")], timestamp_ms=1000))
    seal(log)
    compact(files, log, producers=[7])
    assert [header.max_timestamp for header, _ in batches(log)] == [5000, 1000]
    assert max_timestamp(log, end_offset=log.end_offset) == (1000, 1)


def test_a_start_that_moves_meanwhile_is_followed() -> None:
    files, log = new_log()
    for number in range(12):
        put(log, (b"%d" % number, b"x" * 30))
    seal(log)
    log.delete_before(Offset(7)).run()
    compact(files, log)
    assert [offset for offset, _, _ in rows(log) if offset >= 7] == list(range(7, 12))
