"""When a log is to be compacted, and how much of it at a time."""

from __future__ import annotations

import pytest

from tests.partitions.storage.compaction.keyed import (
    DIRECTORY,
    NOW_MS,
    compact,
    new_log,
    put,
    rows,
    seal,
)
from tidemark.partitions.storage.compaction.settings import CompactionLimits, CompactionSettings
from tidemark.partitions.storage.verify import verify


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
