"""A process dies before it has synced what it began or cut off: what the next one calls durable is.

The page cache outlives the process, so the next one sees all of it; the power then fails, and takes
with it what neither of the two has synced.
"""

from collections.abc import Callable, Iterator
from random import Random

import pytest

from tests.partitions.storage.batches import batch
from tidemark.partitions.storage.log import Log
from tidemark.partitions.storage.settings import LogSettings
from tidemark.protocol.types import Offset
from tidemark.testing.memory_files import MemoryFiles

DIRECTORY = "/p-0"
FIRST = batch(0, size=20) + batch(1, size=20)
SETTINGS = LogSettings(segment_bytes=250, segment_ms=1000)
LATER_MS = 1 << 50
Sync = Callable[[Log], None]


def new_disk() -> MemoryFiles:
    files = MemoryFiles()
    files.make_directory(DIRECTORY)
    files.sync_directory("/")
    return files


def open_log(files: MemoryFiles, recovery_point: int) -> Log:
    return Log.open(files, DIRECTORY, SETTINGS, recovery_point=Offset(recovery_point))


def log_of_two(files: MemoryFiles) -> Log:
    """Two batches, both on the disk."""
    log = open_log(files, 0)
    log.append(batch(0, size=20))
    log.append(batch(1, size=20))
    assert log.sync() == 2
    return log


def find_no_room(files: MemoryFiles, log: Log) -> None:
    """A part of a batch is written, and cut off again."""
    files.capacity_bytes = sum(files.sizes(DIRECTORY).values()) + 10
    with pytest.raises(OSError, match="No space left"):
        log.append(batch(2, size=1))
    files.capacity_bytes = None


def roll(log: Log) -> None:
    """The segment is old: another one is begun."""
    log.apply_retention(LATER_MS, end_offset=log.end_offset)
    assert (log.segment_count, log.size_bytes) == (2, len(FIRST))


def crashes(files: MemoryFiles) -> Iterator[MemoryFiles]:
    """What a loss of power may leave."""
    return (files.after_crash(Random(seed)) for seed in range(50))


def sync_all(log: Log) -> None:
    log.sync()


def sync_tail(log: Log) -> None:
    log.begin_tail_sync().run()


def read_first(log: Log) -> bytes:
    return log.read(Offset(0), bytes_max=1000, end_offset=Offset(2)).read()


@pytest.mark.parametrize("sync", [sync_all, sync_tail])
@pytest.mark.parametrize("is_rolled", [False, True], ids=["", "rolled"])
def test_what_was_cut_off_does_not_come_back_in_the_midst_of_the_log(
    is_rolled: bool, sync: Sync
) -> None:
    files = new_disk()
    log = log_of_two(files)
    find_no_room(files, log)
    if is_rolled:
        roll(log)
    files = files.after_kill()
    log = open_log(files, 2)
    log.append(batch(2, size=100))
    assert log.segment_count == 2
    sync(log)
    for crashed in crashes(files):
        again = open_log(crashed, 3)
        assert (again.end_offset, read_first(again)) == (3, FIRST)


def test_what_was_cut_off_does_not_come_back_before_what_was_written_behind_it() -> None:
    files = new_disk()
    log = log_of_two(files)
    find_no_room(files, log)
    log.append(batch(2, size=100))
    assert log.segment_count == 2
    files = files.after_kill()
    assert open_log(files, 2).end_offset == 3, "and it is durable"
    for crashed in crashes(files):
        again = open_log(crashed, 3)
        assert (again.end_offset, read_first(again)) == (3, FIRST)


@pytest.mark.parametrize("sync", [sync_all, sync_tail])
def test_a_segment_that_was_begun_keeps_its_name_once_there_is_something_in_it(
    sync: Sync,
) -> None:
    files = new_disk()
    roll(log_of_two(files))
    files = files.after_kill()
    log = open_log(files, 2)
    log.append(batch(2, size=20))
    sync(log)
    for crashed in crashes(files):
        assert open_log(crashed, 3).end_offset == 3


@pytest.mark.parametrize("sync", [sync_all, sync_tail])
def test_so_does_the_first_segment_of_a_log_that_began_anew(sync: Sync) -> None:
    files = new_disk()
    left_to_the_caller: list[str] = []
    Log.open(files, DIRECTORY, SETTINGS, unsynced=left_to_the_caller)
    assert left_to_the_caller == [DIRECTORY]
    files = files.after_kill()
    log = open_log(files, 0)
    log.append(batch(0, size=20))
    sync(log)
    for crashed in crashes(files):
        assert open_log(crashed, 1).end_offset == 1


def test_names_are_synced_once() -> None:
    files = new_disk()
    roll(log_of_two(files))
    files = files.after_kill()
    log = open_log(files, 2)
    log.append(batch(2, size=20))
    log.sync()
    assert files.synced_paths.count(DIRECTORY) == 1
    log.append(batch(3, size=20))
    log.sync()
    sync_tail(log)
    assert files.synced_paths.count(DIRECTORY) == 1
