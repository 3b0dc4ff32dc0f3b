"""What retention removes, and what a bad clock cannot make it remove or keep."""

import pytest

from tests.partitions.storage.batches import batch
from tidemark.partitions.storage.log import Log
from tidemark.partitions.storage.retention import Removal
from tidemark.partitions.storage.settings import LogSettings
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.types import Offset
from tidemark.testing.memory_files import MemoryFiles

DIRECTORY = "/p-0"
HOUR = 3_600_000
NOW = 1_000_000 * HOUR
BATCH_BYTES = len(batch(0, size=20))


@pytest.fixture
def files() -> MemoryFiles:
    files = MemoryFiles()
    files.make_directory(DIRECTORY)
    files.now_ms = NOW
    return files


def open_log(files: MemoryFiles, **settings: int) -> Log:
    """Two batches in a segment."""
    given = {"segment_bytes": 2 * BATCH_BYTES, "retention_ms": -1, "retention_bytes": -1}
    return Log.open(files, DIRECTORY, LogSettings(**given | settings))


def append(log: Log, *timestamps_ms: int) -> None:
    for timestamp_ms in timestamps_ms:
        log.append(batch(log.end_offset, size=20, timestamps_ms=[timestamp_ms]))


def retain(log: Log, now_ms: int = NOW, end_offset: int | None = None) -> int:
    """The number of segments removed; their files as well."""
    end = log.end_offset if end_offset is None else Offset(end_offset)
    removal = log.delete_before(log.apply_retention(now_ms, end_offset=end))
    removal.run()
    return len(removal)


def test_without_limits_everything_stays(files: MemoryFiles) -> None:
    log = open_log(files)
    append(log, *[0] * 10)
    assert retain(log) == 0


def test_by_size_the_oldest_segments_go_while_enough_is_left(files: MemoryFiles) -> None:
    log = open_log(files, retention_bytes=5 * BATCH_BYTES)
    append(log, *[NOW] * 10)
    assert retain(log) == 2
    assert (log.start_offset, log.size_bytes) == (4, 6 * BATCH_BYTES)
    assert sorted(name for name in files.sizes(DIRECTORY) if name.endswith(".log"))[0] == (
        "00000000000000000004.log"
    )
    with pytest.raises(RequestError) as caught:
        log.read(Offset(3), bytes_max=100, end_offset=log.end_offset)
    assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_by_time_a_segment_goes_when_its_last_record_is_too_old(files: MemoryFiles) -> None:
    log = open_log(files, retention_ms=HOUR)
    append(log, NOW - 3 * HOUR, NOW - 2 * HOUR, NOW - 2 * HOUR, NOW, NOW)
    assert retain(log) == 1
    assert log.start_offset == 2


def test_nothing_goes_that_is_not_committed(files: MemoryFiles) -> None:
    log = open_log(files, retention_bytes=0)
    append(log, *[NOW] * 10)
    assert retain(log, end_offset=5) == 2
    assert log.start_offset == 4


def test_records_that_are_all_too_old_go_though_their_segment_is_not_full(
    files: MemoryFiles,
) -> None:
    log = open_log(files, retention_ms=HOUR, segment_bytes=1 << 20)
    append(log, *[NOW - 2 * HOUR] * 3)
    assert retain(log) == 1
    assert (log.start_offset, log.end_offset, log.size_bytes) == (3, 3, 0)
    append(log, NOW)
    assert log.read(Offset(3), bytes_max=100, end_offset=Offset(4))


def test_a_segment_is_rolled_when_it_is_old(files: MemoryFiles) -> None:
    log = open_log(files, segment_ms=HOUR, segment_bytes=1 << 20)
    append(log, NOW, NOW)
    retain(log, NOW + HOUR - 1)
    assert log.segment_count == 1
    retain(log, NOW + HOUR)
    assert log.segment_count == 2
    retain(log, NOW + 9 * HOUR)
    assert log.segment_count == 2, "an empty segment is not rolled"


def test_the_age_of_a_segment_survives_a_restart(files: MemoryFiles) -> None:
    log = open_log(files, segment_ms=HOUR, segment_bytes=1 << 20)
    append(log, NOW)
    log.close()
    log = open_log(files, segment_ms=HOUR, segment_bytes=1 << 20)
    retain(log, NOW + HOUR)
    assert log.segment_count == 2


# A bad clock


def test_a_timestamp_in_the_future_does_not_keep_a_segment_for_ever(files: MemoryFiles) -> None:
    log = open_log(files, retention_ms=HOUR)
    append(log, NOW * 1000, NOW, NOW)
    assert retain(log, NOW + HOUR) == 0
    assert retain(log, NOW + HOUR + 1) == 2


def test_a_timestamp_in_the_future_does_not_remove_what_is_new(files: MemoryFiles) -> None:
    log = open_log(files, retention_ms=HOUR)
    append(log, 2**63 - 1, 2**63 - 1, NOW)
    assert retain(log) == 0


def test_timestamps_in_the_future_do_not_roll_a_segment_each(files: MemoryFiles) -> None:
    log = open_log(files, segment_ms=HOUR, segment_bytes=1 << 20)
    for number in range(10):
        append(log, NOW + number * 100 * HOUR)
        retain(log)
    assert log.segment_count == 2, "the first of them begins one"


def test_records_without_timestamps_are_as_old_as_their_file(files: MemoryFiles) -> None:
    log = open_log(files, retention_ms=HOUR)
    append(log, -1, -1, -1)
    assert retain(log, NOW + HOUR) == 0
    assert retain(log, NOW + HOUR + 1) == 2


def test_a_clock_that_goes_back_removes_nothing(files: MemoryFiles) -> None:
    log = open_log(files, retention_ms=HOUR, segment_ms=HOUR)
    append(log, NOW, NOW, NOW)
    assert retain(log, 0) == 0
    assert log.segment_count == 2


def test_a_clock_that_was_ahead_for_a_while_keeps_nothing_for_ever(files: MemoryFiles) -> None:
    """What came then says so, and so does its file. What followed came later and has the time."""
    log = open_log(files, retention_ms=HOUR)
    files.now_ms = NOW + 1000 * HOUR
    append(log, *[files.now_ms] * 4)
    files.now_ms = NOW
    append(log, NOW, NOW, NOW)
    assert retain(log, NOW + HOUR) == 0
    assert retain(log, NOW + HOUR + 1) == 4


def test_a_clock_that_was_ahead_for_a_while_leaves_no_segment_open_for_ever(
    files: MemoryFiles,
) -> None:
    log = open_log(files, retention_ms=HOUR, segment_ms=HOUR, segment_bytes=1 << 20)
    files.now_ms = NOW + 1000 * HOUR
    append(log, files.now_ms)
    assert retain(log, files.now_ms) == 0
    files.now_ms = NOW
    assert retain(log) == 0
    assert retain(log, NOW + HOUR) == 0
    assert log.segment_count == 2


# DeleteRecords


def test_deleting_records_moves_the_start_and_keeps_the_segment_it_is_in(
    files: MemoryFiles,
) -> None:
    log = open_log(files)
    append(log, *[NOW] * 6)
    log.delete_before(Offset(3)).run()
    assert (log.start_offset, log.segment_count) == (3, 2)
    log.delete_before(Offset(1)).run()
    assert log.start_offset == 3, "the start never goes back"


def test_deleting_all_records_leaves_a_log_to_append_to(files: MemoryFiles) -> None:
    log = open_log(files)
    append(log, *[NOW] * 6)
    log.delete_before(Offset(6)).run()
    assert (log.start_offset, log.end_offset, log.segment_count) == (6, 6, 1)
    append(log, NOW)
    assert log.end_offset == 7


def test_a_removal_leaves_the_files_of_a_topic_that_was_made_anew_meanwhile(
    files: MemoryFiles,
) -> None:
    """It was deleted while the removal waited for the disk, and its name was free at once."""
    log = Log.open(files, DIRECTORY, LogSettings(segment_bytes=200))
    while log.segment_count < 4:
        log.append(batch(log.end_offset, size=50))
    log.sync()
    removal = log.delete_before(log.end_offset)
    assert len(removal) == 3
    log.abandon()
    files.rename(DIRECTORY, f"{DIRECTORY}.gone-delete")
    files.make_directory(DIRECTORY)
    anew = Log.open(files, DIRECTORY, LogSettings())
    anew.append(batch(0, size=50))
    end_offset = anew.sync()
    removal.run()
    again = Log.open(files, DIRECTORY, LogSettings(), recovery_point=end_offset)
    assert again.end_offset == 1


def trimmed_and_reset(files: MemoryFiles, offset: int) -> tuple[Log, Removal]:
    """A log of which three segments were still to be removed when it began anew at `offset`."""
    log = Log.open(files, DIRECTORY, LogSettings(segment_bytes=200))
    while log.segment_count < 4:
        log.append(batch(log.end_offset, size=50))
    log.sync()
    removal = log.delete_before(log.end_offset)
    assert len(removal) == 3
    log.reset(Offset(offset))
    return log, removal


def test_a_removal_leaves_what_a_log_that_was_reset_has_written_since(files: MemoryFiles) -> None:
    """It began anew where a segment of it once did: the file has the same name."""
    log, removal = trimmed_and_reset(files, 0)
    log.append(batch(0, size=50))
    end_offset = log.sync()
    removal.run()
    again = Log.open(files.after_kill(), DIRECTORY, LogSettings(), recovery_point=end_offset)
    assert again.end_offset == 1


def test_a_sync_of_names_that_fails_after_a_removal_is_the_log_s_end(files: MemoryFiles) -> None:
    log = open_log(files)
    append(log, *[0] * 6)
    log.sync()
    removal = log.delete_before(Offset(4))
    files.failing_syncs = 1
    with pytest.raises(OSError, match="Input/output error"):
        removal.run()
    assert log.has_failed


def test_a_reset_leaves_nothing_that_a_removal_has_not_come_to(files: MemoryFiles) -> None:
    """An opening would take it for the beginning of what was written behind it since."""
    log, removal = trimmed_and_reset(files, 1)
    assert [name for name in files.sizes(DIRECTORY) if name.endswith(".log")] == [
        "00000000000000000001.log"
    ]
    log.append(batch(1, size=50))
    end_offset = log.sync()
    removal.run()
    again = Log.open(
        files.after_kill(),
        DIRECTORY,
        LogSettings(),
        start_offset=Offset(1),
        recovery_point=end_offset,
    )
    assert (again.start_offset, again.end_offset, again.segment_count) == (1, 2, 1)
