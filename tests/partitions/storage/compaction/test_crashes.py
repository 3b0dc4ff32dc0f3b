"""A crash before every sync of a compaction, with every disk that it may leave."""

from __future__ import annotations

import errno
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from random import Random

import pytest

from tests.partitions.storage.compaction.keyed import (
    AT_ONCE,
    DIRECTORY,
    NOW_MS,
    Row,
    compact,
    new_log,
    put,
    rows,
    seal,
    values,
)
from tests.partitions.storage.crashes import Crashes
from tidemark.partitions.storage.compaction.compacting import CompactionRun
from tidemark.partitions.storage.compaction.log_swap import LogSwap
from tidemark.partitions.storage.compaction.settings import CompactionLimits
from tidemark.partitions.storage.log import Log
from tidemark.partitions.storage.settings import LogSettings
from tidemark.partitions.storage.verify import verify
from tidemark.protocol.errors import StorageError
from tidemark.protocol.types import Offset
from tidemark.testing.memory_files import MemoryFiles

SMALL = LogSettings(segment_bytes=250, index_interval_bytes=60, retention_ms=-1)


def filled(settings: LogSettings = SMALL) -> tuple[MemoryFiles, Log]:
    """Four segments of three batches, of which the first two are to become one; the rest, too."""
    files, log = new_log(settings)
    for number in range(12):
        put(log, (b"%d" % (number % 4), b"%d" % number))
    seal(log)
    put(log, (b"open", b"1"))
    log.sync()
    return files, log


def opened(files: MemoryFiles, recovery_point: int, start_offset: int = 0) -> Log:
    return Log.open(
        files,
        DIRECTORY,
        SMALL,
        start_offset=Offset(start_offset),
        recovery_point=Offset(recovery_point),
    )


def segment_names(files: MemoryFiles) -> list[str]:
    return sorted(name for name in files.sizes(DIRECTORY) if name.endswith(".log"))


@pytest.mark.parametrize("recovery_point", [13, 5])
def test_every_crash_leaves_the_old_segments_or_the_new_ones(recovery_point: int) -> None:
    files, log = filled()
    before, end = rows(log), log.end_offset
    seen: set[tuple[Row, ...]] = set()

    def check(disk: MemoryFiles) -> None:
        left = opened(disk, recovery_point)
        found = rows(left)
        assert left.end_offset == end
        assert set(found) <= set(before)
        assert values(left) == {b"0": b"8", b"1": b"9", b"2": b"10", b"3": b"11", b"open": b"1"}
        assert not [name for name in disk.sizes(DIRECTORY) if name.endswith((".tmp", ".swap"))]
        assert verify(disk, DIRECTORY).problems == []
        # And the next run comes to the end that this one would have had.
        left.sync()
        compact(disk, left)
        assert [offset for offset, _, _ in rows(left)] == [8, 9, 10, 11, 12]
        seen.add(tuple(found))

    crashes = Crashes(files, check)
    compact(files, log)
    crashes.now()
    assert crashes.disks > 40
    assert len(seen) >= 3  # nothing, some segments, all


def test_a_deletion_outlives_what_it_deletes() -> None:
    files, log = new_log(SMALL)
    put(log, (b"a", b"1"), (b"x", b"1"))
    for _ in range(2):
        put(log, (b"pad", b"p" * 150))
    put(log, (b"a", None))
    seal(log)

    def check(disk: MemoryFiles) -> None:
        left = opened(disk, 5)  # what follows is not synced at first
        assert b"a" not in values(left)

    crashes = Crashes(files, check)
    for now_ms in (NOW_MS, NOW_MS + AT_ONCE.delete_retention_ms):
        compact(files, log, now_ms=now_ms)
        put(log, (b"dirt", b"1"))
        seal(log)
    compact(files, log, now_ms=NOW_MS + AT_ONCE.delete_retention_ms)
    assert crashes.disks > 40
    assert not [key for _, key, _ in rows(log) if key == b"a"]


def test_a_full_disk_ends_the_run_and_nothing_else() -> None:
    files, log = filled()
    before, names = rows(log), segment_names(files)
    files.capacity_bytes = sum(files.sizes(DIRECTORY).values()) + 30
    with pytest.raises(OSError, match="No space"):
        compact(files, log)
    files.capacity_bytes = None
    assert not [name for name in files.sizes(DIRECTORY) if name.endswith(".tmp")]
    assert (rows(log), segment_names(files)) == (before, names)
    compact(files, log)
    assert [offset for offset, _, _ in rows(log)] == [8, 9, 10, 11, 12]


class Short:
    """What is done to the names of a disk, of which one step fails once: there is no descriptor."""

    def __init__(self, files: MemoryFiles, patch: pytest.MonkeyPatch, *, failing: int) -> None:
        self.left = failing
        for name in ("remove", "rename", "sync_directory"):
            patch.setattr(files, name, partial(self._do, getattr(files, name)))

    def _do(self, step: Callable[..., None], *paths: str) -> None:
        self.left -= 1
        if self.left == -1:
            raise OSError(errno.EMFILE, "Too many open files")
        step(*paths)


def adopted(files: MemoryFiles, log: Log) -> LogSwap:
    """The first segment of a run, which counts, with the old ones still there."""
    rewritten = next(iter(run_of(files, log)))
    swap = log.begin_swap(rewritten)
    assert swap is not None
    assert swap.commit()
    log.adopt(swap)
    return swap


def test_a_swap_that_could_not_be_finished_is_finished_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    steps = 0
    while True:
        files, log = filled()
        swap, found = adopted(files, log), values(log)
        with monkeypatch.context() as patch:
            short = Short(files, patch, failing=steps)
            with suppress(OSError):
                swap.finish()
            assert values(log) == found
            is_over = short.left >= 0
            assert swap.finish()
        assert not log.has_failed
        assert values(log) == found
        assert not [name for name in files.sizes(DIRECTORY) if name.endswith((".tmp", ".swap"))]
        assert verify(files, DIRECTORY).problems == []
        assert values(opened(files.after_crash(Random(steps)), 13)) == found
        compact(files, log)
        assert [offset for offset, _, _ in rows(log)] == [8, 9, 10, 11, 12]
        if is_over:
            break
        steps += 1
    assert steps > 6


def test_a_swap_whose_name_could_not_be_synced_does_not_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files, log = filled()
    found = values(log)
    swap = log.begin_swap(next(iter(run_of(files, log))))
    assert swap is not None
    with monkeypatch.context() as patch:
        Short(files, patch, failing=1)
        with pytest.raises(OSError, match="Too many open files"):
            swap.commit()
    log.end_swap(swap)
    assert not log.has_failed
    assert not [name for name in files.sizes(DIRECTORY) if name.endswith(".swap")]
    for seed in range(20):
        assert values(opened(files.after_crash(Random(seed)), 13)) == found
    log.truncate(Offset(4))  # within what the new segment was made of
    kept = values(log)
    for seed in range(20):
        assert values(opened(files.after_crash(Random(seed)), 4)) == kept


@pytest.mark.parametrize("spared", [0, 1])
def test_a_sync_that_fails_when_a_swap_is_finished_is_the_end(spared: int) -> None:
    files, log = filled()
    swap = adopted(files, log)
    files.failing_syncs, files.spared_syncs = 1, spared
    with pytest.raises(OSError, match="Input/output error"):
        swap.finish()
    assert log.has_failed
    with pytest.raises(StorageError, match="a sync failed"):
        log.sync()


# What is done to the log between the steps of a swap


def run_of(files: MemoryFiles, log: Log) -> CompactionRun:
    dirt = log.dirt(AT_ONCE, NOW_MS, end_offset=log.end_offset)
    job = log.compaction_job(dirt, AT_ONCE, CompactionLimits(), now_ms=NOW_MS, producers=())
    return CompactionRun(files, job, lambda size_bytes: None)


@pytest.mark.parametrize("offset", [12, 8, 5, 0])
@pytest.mark.parametrize("steps", range(4))
def test_a_log_that_is_cut_meanwhile_is_cut(steps: int, offset: int) -> None:
    files, log = filled()
    first = next(iter(run_of(files, log)))
    swap = log.begin_swap(first)
    assert swap is not None
    for step in (swap.commit, lambda: log.adopt(swap), swap.finish)[:steps]:
        step()
    log.truncate(Offset(offset))
    assert log.end_offset <= offset
    for step in (swap.commit, lambda: log.adopt(swap), swap.finish)[steps:]:
        step()
    end = log.end_offset
    put(log, (b"new", b"1"))
    log.sync()
    for left in (log, opened(files.after_kill(), log.end_offset)):
        assert [row for row in rows(left) if row[0] >= end] == [(end, b"new", b"1")]
        assert left.segment_count == len(segment_names(files))


@pytest.mark.parametrize("steps", range(4))
def test_a_log_that_is_reset_meanwhile_is_reset(steps: int) -> None:
    files, log = filled()
    swap = log.begin_swap(next(iter(run_of(files, log))))
    assert swap is not None
    for step in (swap.commit, lambda: log.adopt(swap), swap.finish)[:steps]:
        step()
    log.reset(Offset(2))  # within what the swap stands for
    for step in (swap.commit, lambda: log.adopt(swap), swap.finish)[steps:]:
        step()
    put(log, (b"new", b"1"))
    log.sync()
    again = opened(files.after_kill(), log.end_offset, start_offset=2)
    assert rows(log) == rows(again) == [(2, b"new", b"1")]


@pytest.mark.parametrize("steps", range(4))
def test_a_log_that_is_closed_meanwhile_opens_as_one_of_the_two(steps: int) -> None:
    files, log = filled()
    swap = log.begin_swap(next(iter(run_of(files, log))))
    assert swap is not None
    for step in (swap.commit, lambda: log.adopt(swap), swap.finish)[:steps]:
        step()
    end = log.close()
    for step in (swap.commit, lambda: log.adopt(swap), swap.finish)[steps:]:
        step()
    again = opened(files, end)
    assert again.recovery.clean
    assert values(again).keys() == {b"0", b"1", b"2", b"3", b"open"}
    assert verify(files, DIRECTORY).problems == []


def test_the_start_moves_while_a_segment_is_swapped() -> None:
    files, log = filled()
    swap = log.begin_swap(next(iter(run_of(files, log))))
    assert swap is not None
    assert swap.commit()
    assert len(log.delete_before(Offset(9))) == 0  # their files are in use
    log.adopt(swap)
    swap.finish()
    log.sweep().run()
    assert min(offset for offset, _, _ in rows(log)) == 9
    again = opened(files.after_kill(), log.end_offset, start_offset=9)
    assert rows(again) == rows(log)


def test_retention_is_put_off_while_a_segment_is_swapped(monkeypatch: pytest.MonkeyPatch) -> None:
    files, log = filled(replace(SMALL, retention_ms=1))
    seal(log)
    starts: list[Offset] = []

    def look(step: Callable[..., None], *paths: str) -> None:
        starts.append(log.apply_retention(NOW_MS, end_offset=log.end_offset))
        step(*paths)

    swap = adopted(files, log)
    for name in ("remove", "rename", "sync_directory"):
        monkeypatch.setattr(files, name, partial(look, getattr(files, name)))
    assert swap.finish()
    assert set(starts) == {0}
    assert log.apply_retention(NOW_MS, end_offset=log.end_offset) == log.end_offset


def test_a_segment_that_is_gone_is_not_replaced() -> None:
    files, log = filled()
    first = next(iter(run_of(files, log)))
    log.delete_before(Offset(9)).run()
    assert log.begin_swap(first) is None


def test_a_log_that_is_given_up_is_left_as_it_is() -> None:
    """Its directory is renamed by then, and the path may soon be another log's."""
    files, log = filled()
    run = run_of(files, log)
    first = next(iter(run))
    log.abandon()
    log.start_offset = Offset(9)
    before = files.sizes(DIRECTORY)
    assert log.begin_swap(first) is None
    log.sweep().run()
    log.note_cleaned(Offset(9))
    assert files.sizes(DIRECTORY) == before


def test_damage_is_found_before_anything_is_replaced() -> None:
    files, log = filled()
    file = files.open(f"{DIRECTORY}/{segment_names(files)[-2]}")
    file.pwrite(b"\xff", 65)
    before = segment_names(files)
    with pytest.raises(StorageError, match="is corrupt at byte 0"):
        compact(files, log)
    assert segment_names(files) == before
