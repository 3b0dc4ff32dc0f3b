"""What a start knows of the compactions before it."""

from tests.partitions.storage.compaction.keyed import (
    DIRECTORY,
    SETTINGS,
    compact,
    new_log,
    put,
    seal,
)
from tidemark.partitions.storage.log import Log


def test_a_start_knows_what_is_clean() -> None:
    files, log = new_log()
    put(log, (b"a", b"1"))
    seal(log)
    compact(files, log)
    end = log.close()
    again = Log.open(files, DIRECTORY, SETTINGS, recovery_point=end)
    assert again.cleaned_to == 1
    assert compact(files, again) is None


def test_without_that_file_all_is_dirty_again() -> None:
    files, log = new_log()
    put(log, (b"a", b"1"))
    seal(log)
    compact(files, log)
    files.remove(f"{DIRECTORY}/compacted")
    again = Log.open(files, DIRECTORY, SETTINGS, recovery_point=log.close())
    assert again.cleaned_to == 0
    assert compact(files, again) is not None


def test_when_a_log_was_last_compacted_is_known_to_its_next_opening() -> None:
    files, log = new_log()
    put(log, (b"a", b"1"), (b"a", b"2"))
    seal(log)
    assert log.cleaned_ms is None
    files.now_ms = 2000
    assert compact(files, log) is not None
    files.now_ms = 3000
    end_offset = log.close()
    log = Log.open(files, DIRECTORY, SETTINGS, recovery_point=end_offset)
    assert log.cleaned_ms == 2000
