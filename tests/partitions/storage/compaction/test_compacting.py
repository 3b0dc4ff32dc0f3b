"""What a compaction leaves of a log."""

from __future__ import annotations

import pytest

from tests.partitions.storage.compaction.keyed import (
    AT_ONCE,
    DIRECTORY,
    NOW_MS,
    batches,
    compact,
    keyed_batch,
    marker,
    new_log,
    put,
    rows,
    seal,
    values,
)
from tests.partitions.storage.searches import find_timestamp, max_timestamp
from tidemark.partitions.storage.compaction.settings import CompactionLimits, CompactionSettings
from tidemark.partitions.storage.verify import verify
from tidemark.protocol.errors import StorageError
from tidemark.protocol.records.compression import Compression
from tidemark.protocol.records.gaps import is_gap
from tidemark.protocol.records.header import HEADER_BYTES, build_batch, read_header
from tidemark.protocol.records.records import Record, decode_batch, encode_section
from tidemark.protocol.types import Offset

LAST_MS = 2**63 - 1
BEFORE_ITS_TIME = NOW_MS + AT_ONCE.delete_retention_ms - 1
IN_TIME = NOW_MS + AT_ONCE.delete_retention_ms


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


# Deletions


def test_a_deletion_stays_for_its_time_from_the_first_compaction_on() -> None:
    files, log = new_log()
    put(log, (b"a", b"1"), (b"b", b"1"))
    put(log, (b"a", None))
    seal(log)
    compact(files, log)
    deletion = (2, b"a", None)
    assert rows(log) == [(1, b"b", b"1"), deletion]
    for now_ms, is_there in ((BEFORE_ITS_TIME, True), (IN_TIME, False)):
        put(log, (b"c", b"%d" % now_ms))
        seal(log)
        compact(files, log, now_ms=now_ms)
        assert (deletion in rows(log)) is is_there
    assert set(values(log)) == {b"b", b"c"}


def test_a_deletion_keeps_its_timestamp() -> None:
    files, log = new_log()
    log.append(keyed_batch(log, [(b"a", None), (b"b", b"1")], timestamp_ms=777))
    seal(log)
    compact(files, log)
    ((header, data),) = batches(log)
    assert [record.timestamp_ms for record in decode_batch(data, header)] == [777, 778]
    assert header.delete_horizon_ms == NOW_MS + AT_ONCE.delete_retention_ms
    assert header.max_timestamp == 778


def test_deletions_may_stay_for_ever() -> None:
    files, log = new_log()
    put(log, (b"a", b"1"))
    put(log, (b"a", None))
    seal(log)
    put(log, (b"b", b"1"))
    seal(log)
    for_ever = CompactionSettings(min_cleanable_dirty_ratio=0.0, delete_retention_ms=2**63 - 1)
    for now_ms in (NOW_MS, 2 * NOW_MS):
        compact(files, log, for_ever, now_ms=now_ms)
        assert rows(log) == [(1, b"a", None), (2, b"b", b"1")]
    _, (header, deletion), _ = batches(log)
    assert [record.timestamp_ms for record in decode_batch(deletion, header)] == [1000]


def test_a_key_that_comes_back_after_its_deletion_is_there() -> None:
    files, log = new_log()
    put(log, (b"a", b"1"))
    put(log, (b"a", None))
    put(log, (b"a", b"2"))
    seal(log)
    compact(files, log)
    assert rows(log) == [(2, b"a", b"2")]


def test_an_empty_value_is_no_deletion() -> None:
    files, log = new_log()
    put(log, (b"a", b""))
    seal(log)
    for now_ms in (NOW_MS, IN_TIME):
        put(log, (b"b", b"1"))
        seal(log)
        compact(files, log, now_ms=now_ms)
    assert (0, b"a", b"") in rows(log)


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


# Producers and transactions


def test_the_last_batch_of_a_producer_that_may_come_back_stays_without_its_records() -> None:
    files, log = new_log()
    for sequence in (0, 1):
        log.append(keyed_batch(log, [(b"a", b"x")], producer=(7, 0, sequence)))
    log.append(keyed_batch(log, [(b"a", b"x")], producer=(8, 0, 0)))
    put(log, (b"a", b"last"))
    seal(log)
    compact(files, log, producers=[7])
    gap, emptied, _, _ = batches(log)
    assert is_gap(gap[0])
    assert gap[0].last_offset == 0
    assert (emptied[0].producer_id, emptied[0].last_sequence) == (7, 1)
    assert emptied[0].record_count == 0
    assert len(emptied[1]) == HEADER_BYTES
    put(log, (b"b", b"1"))
    seal(log)
    compact(files, log, producers=[])
    assert is_gap(batches(log)[0][0])
    assert batches(log)[0][0].last_offset == 2


def test_an_aborted_record_is_dropped_and_replaces_nothing() -> None:
    files, log = new_log()
    put(log, (b"a", b"1"))
    log.append(keyed_batch(log, [(b"a", b"no")], producer=(7, 0, 0), is_transactional=True))
    log.append(marker(log, 7, commits=False))
    seal(log)
    compact(files, log)
    assert rows(log) == [(0, b"a", b"1")]
    assert batches(log)[-1][0].is_control


def test_a_committed_record_counts_as_any_other() -> None:
    files, log = new_log()
    put(log, (b"a", b"1"))
    log.append(keyed_batch(log, [(b"a", b"yes")], producer=(7, 0, 0), is_transactional=True))
    log.append(marker(log, 7, commits=True))
    seal(log)
    compact(files, log)
    assert rows(log) == [(1, b"a", b"yes")]


def test_nothing_is_compacted_from_where_a_transaction_is_undecided() -> None:
    files, log = new_log()
    put(log, (b"a", b"1"))
    put(log, (b"a", b"2"))
    log.append(keyed_batch(log, [(b"a", b"open")], producer=(7, 0, 0), is_transactional=True))
    put(log, (b"b", b"1"))
    put(log, (b"b", b"2"))
    seal(log)
    tally = compact(files, log)
    assert tally is not None
    assert tally.cleaned_to == log.cleaned_to == 2
    assert [offset for offset, _, _ in rows(log)] == [1, 2, 3, 4]
    log.append(marker(log, 7, commits=False))
    seal(log)
    compact(files, log)
    assert rows(log) == [(1, b"a", b"2"), (4, b"b", b"2")]


def test_a_commit_stays_until_its_records_are_gone_and_its_time_is_over() -> None:
    files, log = new_log()
    log.append(keyed_batch(log, [(b"a", b"1")], producer=(7, 0, 0), is_transactional=True))
    log.append(marker(log, 7, commits=True))
    seal(log)

    def commits(now_ms: int) -> int:
        put(log, (b"dirt", b"1"))
        seal(log)
        compact(files, log, now_ms=now_ms)
        return sum(header.is_control for header, _ in batches(log))

    assert commits(NOW_MS) == 1
    assert commits(IN_TIME) == 1  # the record is there
    put(log, (b"a", b"2"))
    assert commits(NOW_MS) == 1  # its time begins
    assert commits(BEFORE_ITS_TIME) == 1
    assert commits(IN_TIME) == 0


def test_an_abort_stays_for_readers_are_told_to_wait_for_it() -> None:
    files, log = new_log()
    log.append(keyed_batch(log, [(b"a", b"no")], producer=(7, 0, 0), is_transactional=True))
    log.append(marker(log, 7, commits=False))
    for now_ms in (NOW_MS, IN_TIME, 2 * IN_TIME):
        put(log, (b"dirt", b"1"))
        seal(log)
        compact(files, log, now_ms=now_ms)
    assert sum(header.is_control for header, _ in batches(log)) == 1


# When there is something to do, and how much at a time


def test_a_log_is_due_by_the_share_of_it_that_is_dirty() -> None:
    files, log = new_log()
    half = CompactionSettings(min_cleanable_dirty_ratio=0.5)
    for number in range(5):
        put(log, (b"%d" % number, b"x"))
    seal(log)
    assert compact(files, log, half) is not None
    for number in range(4):
        put(log, (b"%d" % number, b"y"))
    seal(log)
    dirt = log.dirt(half, NOW_MS, end_offset=log.end_offset)
    assert dirt.ratio == pytest.approx(4 / 9)
    assert compact(files, log, half) is None
    put(log, (b"4", b"y"))
    put(log, (b"5", b"y"))
    seal(log)
    assert compact(files, log, half) is not None


def test_a_record_is_left_alone_for_the_smallest_lag() -> None:
    files, log = new_log()
    lagging = CompactionSettings(min_cleanable_dirty_ratio=0.0, min_compaction_lag_ms=500)
    files.now_ms = 2000
    put(log, (b"a", b"1"), (b"a", b"2"))
    seal(log)
    assert compact(files, log, lagging, now_ms=1500) is None
    assert compact(files, log, lagging, now_ms=1501) is not None


def test_the_largest_lag_makes_it_due_whatever_its_share() -> None:
    files, log = new_log()
    overdue = CompactionSettings(min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=500)
    put(log, (b"a", b"1"), (b"a", b"2"))
    seal(log)
    assert compact(files, log, overdue, now_ms=1500) is None
    assert compact(files, log, overdue, now_ms=1502) is not None


def test_a_map_that_is_full_makes_several_runs_that_come_to_the_same() -> None:
    files, log = new_log()
    for number in range(40):
        put(log, (b"%d" % (number % 20), b"%d" % number))
    seal(log)
    limits = CompactionLimits(map_bytes_max=7 * 256)
    runs = 0
    while (tally := compact(files, log, limits=limits)) is not None:
        assert tally.keys <= 7
        runs += 1
    assert runs == 6
    assert [offset for offset, _, _ in rows(log)] == list(range(20, 40))
    assert verify(files, DIRECTORY).is_sound


def test_small_neighbours_become_one_segment() -> None:
    files, log = new_log()
    for number in range(30):
        put(log, (b"%d" % (number % 2), b"x" * 20))
    seal(log)
    put(log, (b"2", b"x"))
    before = log.segment_count
    for _ in range(3):
        compact(files, log)
        put(log, (b"2", b"x"))
        seal(log)
    assert log.segment_count < before
    assert verify(files, DIRECTORY).is_sound


def test_a_log_without_dirt_is_not_looked_at() -> None:
    files, log = new_log()
    put(log, (b"a", b"1"))
    seal(log)
    assert compact(files, log) is not None
    assert compact(files, log) is None


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
