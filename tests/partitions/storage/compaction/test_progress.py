"""What a start knows of the compactions before it."""

from random import Random

import pytest

from tests.partitions.storage.compaction.keyed import (
    DIRECTORY,
    SETTINGS,
    compact,
    new_log,
    put,
    rows,
    seal,
)
from tidemark.partitions.raft.entries import Configuration, EpochStart
from tidemark.partitions.storage.log import Log
from tidemark.protocol.types import Epoch, NodeId, Offset
from tidemark.testing.memory_files import MemoryFiles


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


def test_nor_is_anything_clean_where_it_is_damaged() -> None:
    files, log = new_log()
    put(log, (b"a", b"1"))
    seal(log)
    compact(files, log)
    files.flip_bit(f"{DIRECTORY}/compacted", 11, 1)
    again = Log.open(files, DIRECTORY, SETTINGS, recovery_point=log.close())
    assert again.cleaned_to == 0


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


def written_anew(files: MemoryFiles, log: Log) -> None:
    """In place of what was cut off: a key twice, and others behind where the log was clean."""
    for key in (b"a", b"a", b"b", b"c", b"d"):
        put(log, (key, b"new"))
    seal(log)
    assert compact(files, log) is not None
    assert [key for _, key, value in rows(log) if value == b"new"] == [b"a", b"b", b"c", b"d"]


def compacted() -> tuple[MemoryFiles, Log]:
    """A log that is clean up to offset 4, and begins at 0."""
    files, log = new_log()
    for value in (b"1", b"2", b"3", b"4"):
        put(log, (b"a", value))
    seal(log)
    compact(files, log)
    assert log.cleaned_to == 4
    return files, log


@pytest.mark.parametrize("is_opened_again", [False, True])
@pytest.mark.parametrize("is_reset", [False, True])
def test_what_follows_what_was_cut_off_is_dirty(is_opened_again: bool, is_reset: bool) -> None:
    files, log = compacted()
    if is_reset:
        log.reset(Offset(0))
    else:
        log.truncate(Offset(1))
    if is_opened_again:
        log = Log.open(files, DIRECTORY, SETTINGS, recovery_point=log.close())
    written_anew(files, log)


def test_so_is_what_follows_what_a_start_has_cut_off() -> None:
    files, log = compacted()
    log.close()
    voters = Configuration((NodeId(1),))
    epochs = [EpochStart(Epoch(1), Offset(0), NodeId(1), voters)]
    epochs.append(EpochStart(Epoch(2), Offset(1), NodeId(1), voters))
    log = Log.open(files, DIRECTORY, SETTINGS, epochs=epochs)
    assert log.end_offset == 1
    files = files.after_crash(Random(0))
    log = Log.open(files, DIRECTORY, SETTINGS, recovery_point=Offset(1))
    written_anew(files, log)
