"""Deletions stay in a compacted log for their time."""

from __future__ import annotations

from tests.partitions.storage.compaction.keyed import (
    AT_ONCE,
    BEFORE_ITS_TIME,
    IN_TIME,
    NOW_MS,
    batches,
    compact,
    keyed_batch,
    new_log,
    put,
    rows,
    seal,
    values,
)
from tidemark.partitions.storage.compaction.settings import CompactionSettings
from tidemark.protocol.records.records import decode_batch


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
