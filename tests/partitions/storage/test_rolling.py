"""A segment is closed to writing when what comes is too much later than what it begins with."""

import pytest

from tests.partitions.storage.appending import WAYS, Append, append_run
from tests.partitions.storage.batches import batch
from tests.partitions.storage.directories import files_with
from tidemark.partitions.storage import retention
from tidemark.partitions.storage.log import Log
from tidemark.partitions.storage.settings import LogSettings
from tidemark.protocol.types import Offset
from tidemark.testing.memory_files import MemoryFiles

DIRECTORY = "/p-0"
NOW = 1_700_000_000_000
MS = 1000
"""As old as a segment becomes."""
HOUR = 3_600_000


@pytest.fixture
def files() -> MemoryFiles:
    files = files_with(DIRECTORY)
    files.now_ms = NOW
    return files


def open_log(files: MemoryFiles, *, recovery_point: int = 0, **settings: int) -> Log:
    given = {"segment_ms": MS, "retention_ms": -1}
    return Log.open(
        files, DIRECTORY, LogSettings(**given | settings), recovery_point=Offset(recovery_point)
    )


def append(log: Log, *timestamps_ms: int) -> None:
    for timestamp_ms in timestamps_ms:
        log.append(batch(log.end_offset, size=20, timestamps_ms=[timestamp_ms]))


def bases(log: Log) -> list[int]:
    """Where its segments begin."""
    return [segment.base_offset for segment in log._segments]


# How batches come


@pytest.mark.parametrize("way", WAYS)
def test_a_batch_that_is_too_late_for_its_segment_begins_another(
    files: MemoryFiles, way: Append
) -> None:
    log = open_log(files)
    for timestamp_ms in (NOW, NOW + MS, NOW + MS + 1, NOW + 2 * MS + 1, NOW + 2 * MS + 2):
        way(log, [timestamp_ms])
    assert bases(log) == [0, 2, 4]


@pytest.mark.parametrize("way", WAYS)
def test_batches_that_come_together_lie_in_one_segment_by_the_last_ones_time(
    files: MemoryFiles, way: Append
) -> None:
    log = open_log(files)
    way(log, [NOW, NOW + 5 * MS])
    way(log, [NOW + 5 * MS, NOW + MS])
    way(log, [NOW + MS, NOW + MS + 1])
    assert bases(log) == [0, 4]
    assert log.end_offset == 6


def test_a_run_that_would_begin_a_segment_is_none(files: MemoryFiles) -> None:
    """It is appended one by one, so that the first that is too late begins it."""
    log = open_log(files)
    assert log.has_room_for(1000, 10, NOW + 5 * MS)
    append(log, NOW)
    assert log.has_room_for(1000, 10, NOW + MS)
    assert not log.has_room_for(1000, 10, NOW + MS + 1)
    append(log, NOW + MS + 1)
    assert log.has_room_for(1000, 10, NOW + MS + 1)


def test_of_a_run_that_begins_a_segment_and_does_not_fit_nothing_is_left(
    files: MemoryFiles,
) -> None:
    log = open_log(files)
    append(log, NOW)
    files.capacity_bytes = log.size_bytes + 130
    with pytest.raises(OSError, match="No space left"):
        append_run(log, [NOW + 2 * MS, NOW + 2 * MS])
    assert (log.end_offset, log.size_bytes) == (1, len(batch(0, size=20)))
    files.capacity_bytes = None
    append_run(log, [NOW + 2 * MS, NOW + 2 * MS])
    assert (bases(log), log.end_offset) == ([0, 1], 3)
    again = open_log(files.after_kill())
    assert (again.end_offset, again.recovery.cut) == (3, None)


# What is known of the first batch


@pytest.mark.parametrize("is_clean", [True, False])
def test_what_a_segment_begins_with_is_known_after_a_restart(
    files: MemoryFiles, is_clean: bool
) -> None:
    log = open_log(files)
    append(log, NOW, NOW + 1)
    recovery_point = log.close() if is_clean else 0
    log = open_log(files.after_kill(), recovery_point=recovery_point)
    append(log, NOW + MS)
    assert bases(log) == [0]
    append(log, NOW + MS + 1)
    assert bases(log) == [0, 3]


def test_a_segment_that_has_lost_its_first_batch_begins_with_another(files: MemoryFiles) -> None:
    log = open_log(files)
    append(log, NOW, NOW + 1)
    log.sync()
    log.truncate(Offset(0))
    append(log, NOW + 5 * MS, NOW + 6 * MS)
    assert bases(log) == [0]
    append(log, NOW + 6 * MS + 1)
    assert bases(log) == [0, 2]


def test_a_log_that_has_lost_a_segment_goes_by_the_one_that_is_last_now(
    files: MemoryFiles,
) -> None:
    log = open_log(files)
    append(log, NOW, NOW + 5 * MS, NOW + 5 * MS)
    log.sync()
    log.truncate(Offset(1))
    assert bases(log) == [0, 1]
    log.truncate(Offset(0))
    append(log, NOW)
    log.sync()
    log.truncate(Offset(1))
    append(log, NOW + 2 * MS)
    assert bases(log) == [0, 1]


def test_a_log_that_begins_anew_knows_nothing_of_what_was_there(files: MemoryFiles) -> None:
    log = open_log(files)
    append(log, NOW, NOW + 1)
    log.sync()
    log.reset(Offset(7))
    append(log, NOW + 5 * MS, NOW + 6 * MS, NOW + 6 * MS + 1)
    assert bases(log) == [7, 9]


def test_a_setting_holds_for_the_segment_that_is_there(files: MemoryFiles) -> None:
    log = open_log(files, segment_ms=HOUR)
    append(log, NOW, NOW + 2 * MS)
    log.settings = LogSettings(segment_ms=MS)
    append(log, NOW + 2 * MS)
    assert bases(log) == [0, 2]
    log.settings = LogSettings(segment_ms=HOUR)
    append(log, NOW + 4 * MS)
    assert bases(log) == [0, 2]


def test_damage_where_a_segment_begins_refuses_no_append(files: MemoryFiles) -> None:
    log = open_log(files)
    append(log, NOW)
    path = f"{DIRECTORY}/{0:020d}.log"
    files.open(path).pwrite(bytes(61), 0)
    append(log, NOW + 5 * MS)
    files.rename(path, f"{path}.elsewhere")
    log.settings = LogSettings(segment_ms=2 * MS)
    append(log, NOW + 5 * MS)
    assert (bases(log), log.end_offset) == ([0], 3)


# Whatever producers say


def test_timestamps_that_go_back_begin_no_segment(files: MemoryFiles) -> None:
    log = open_log(files)
    append(log, NOW, NOW - 5 * MS, 0, -1, NOW + MS)
    assert bases(log) == [0]


def test_who_writes_something_old_first_begins_one_segment_more(files: MemoryFiles) -> None:
    log = open_log(files)
    append(log, *[0, NOW] * 20)
    assert bases(log) == [0, 1]


def test_without_timestamps_a_segment_is_left_to_the_sweep(files: MemoryFiles) -> None:
    log = open_log(files)
    append(log, -1, -1, NOW, NOW + 5 * MS)
    log.apply_retention(NOW, end_offset=log.end_offset)
    assert bases(log) == [0]
    log.apply_retention(NOW + MS, end_offset=log.end_offset)
    assert bases(log) == [0, 4]


@pytest.mark.parametrize("factor", [1000, 1_000_000])
def test_who_writes_microseconds_for_milliseconds_begins_one_segment_and_not_one_each(
    files: MemoryFiles, factor: int
) -> None:
    log = open_log(files)
    append(log, NOW, *[(NOW + at * MS) * factor for at in range(20)])
    assert bases(log) == [0, 1]
    log.apply_retention(NOW, end_offset=log.end_offset)
    log.apply_retention(NOW + MS, end_offset=log.end_offset)
    append(log, NOW + MS, NOW + 3 * MS)
    assert bases(log) == [0, 1, 21, 22]


def test_a_clock_that_is_a_little_ahead_is_believed(files: MemoryFiles) -> None:
    log = open_log(files)
    append(log, NOW + HOUR, NOW + HOUR + MS, NOW + HOUR + MS + 1)
    assert bases(log) == [0, 2]
    append(log, NOW + HOUR + 3 * MS)
    assert bases(log) == [0, 2], "it begins too far ahead"


# Jitter


def jittered(partition: int, jitter_ms: int) -> int:
    """How old its first segment becomes."""
    directory = f"/t-{partition}"
    files = files_with(directory)
    settings = LogSettings(segment_ms=MS, segment_jitter_ms=jitter_ms)
    log = Log.open(files, directory, settings)
    append(log, 0)
    return retention.rolls_above_ms(files, log._segments[0], settings)


def test_jitter_keeps_logs_from_beginning_segments_all_at_once() -> None:
    found = {jittered(partition, MS // 2) for partition in range(100)}
    assert len(found) > 50
    assert all(MS // 2 < ms <= MS for ms in found)


def test_a_jitter_of_more_than_all_leaves_something() -> None:
    found = [jittered(partition, 100 * MS) for partition in range(100)]
    assert all(0 < ms <= MS for ms in found)
    assert found == [jittered(partition, 100 * MS) for partition in range(100)]


def test_the_sweep_goes_by_it_too(files: MemoryFiles) -> None:
    log = open_log(files, segment_jitter_ms=MS // 2)
    append(log, NOW)
    open_ms = retention.rolls_above_ms(files, log._segments[0], log.settings) - NOW
    assert open_ms < MS
    log.apply_retention(NOW + open_ms - 1, end_offset=log.end_offset)
    assert bases(log) == [0]
    log.apply_retention(NOW + open_ms, end_offset=log.end_offset)
    assert bases(log) == [0, 1]
