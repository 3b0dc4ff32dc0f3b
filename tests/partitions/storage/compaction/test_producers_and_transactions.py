"""What a compaction leaves of producers and of transactions."""

from __future__ import annotations

from tests.partitions.storage.compaction.keyed import (
    BEFORE_ITS_TIME,
    IN_TIME,
    NOW_MS,
    batches,
    compact,
    keyed_batch,
    marker,
    new_log,
    put,
    rows,
    seal,
)
from tidemark.protocol.records.gaps import is_gap
from tidemark.protocol.records.header import HEADER_BYTES


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
