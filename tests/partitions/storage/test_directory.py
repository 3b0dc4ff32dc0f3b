"""The data directory: one broker at a time, and names that come and go durably."""

import errno
import os
import subprocess
import sys
from pathlib import Path
from random import Random
from uuid import UUID

import pytest

from tests.descriptors import no_descriptors
from tests.partitions.storage.every_crash import every_crash
from tidemark.partitions.storage.directory import DataDirectory, partition_of
from tidemark.partitions.storage.files import read_file
from tidemark.partitions.storage.os_files import OsFiles
from tidemark.protocol.errors import StorageError
from tidemark.protocol.types import TopicPartition
from tidemark.testing.memory_files import MemoryFiles

EVENTS = TopicPartition("events", 0)


def open_directory(path: Path) -> DataDirectory:
    return DataDirectory.open(OsFiles(), str(path))


def test_it_is_made_with_its_parents(tmp_path: Path) -> None:
    open_directory(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b" / "lock").read_text().strip() == str(os.getpid())


def test_in_memory_it_does_not_say_whose_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process whose number has a digit more would write a byte more: the simulator would tear
    other writes, and a seed would be another run."""
    written = set[bytes]()
    for process in (9_999, 10_000):
        monkeypatch.setattr(os, "getpid", lambda process=process: process)
        files = MemoryFiles()
        directory = DataDirectory.open(files, "/data")
        written.add(read_file(files, "/data/lock"))
        directory.close()
    assert written == {b"1\n"}


def test_one_whose_making_was_interrupted_is_as_durable_as_any() -> None:
    files = MemoryFiles()
    files.failing_syncs = 1
    with pytest.raises(StorageError, match="cannot be used"):
        DataDirectory.open(files, "/data")
    files = files.after_kill()
    DataDirectory.open(files, "/data").create_partition(EVENTS)
    files.sync_directory("/data")
    assert all(files.after_crash(Random(seed)).exists(f"/data/{EVENTS}") for seed in range(20))


def test_without_descriptors_no_other_directory_is_recommended(tmp_path: Path) -> None:
    with no_descriptors(), pytest.raises(StorageError, match=r"Too many open files\. Another"):
        open_directory(tmp_path)
    open_directory(tmp_path)


def test_a_second_broker_is_told_whose_it_is(tmp_path: Path) -> None:
    open_directory(tmp_path)
    with pytest.raises(StorageError, match=f"used by another broker .process {os.getpid()}."):
        open_directory(tmp_path)


def test_a_second_process_is_kept_out(tmp_path: Path) -> None:
    held = open_directory(tmp_path)
    code = (
        "import sys; from tidemark.partitions.storage.directory import DataDirectory;"
        "from tidemark.partitions.storage.os_files import OsFiles;"
        "DataDirectory.open(OsFiles(), sys.argv[1])"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    refused = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert "StorageError" in refused.stderr
    held.close()
    subprocess.run(command, check=True, timeout=60)


def test_the_next_process_knows_of_a_sync_that_failed_until_what_follows_is_recorded() -> None:
    files = MemoryFiles()
    DataDirectory.open(files, "/data").note_failed_sync()
    for _ in range(2):
        files = files.after_kill()
        directory = DataDirectory.open(files, "/data")
        assert directory.has_sync_failed
    directory.forget_failed_sync()
    assert not directory.has_sync_failed
    assert not DataDirectory.open(files.after_kill(), "/data").has_sync_failed


def test_a_sync_that_fails_once_the_directory_is_given_back_is_known_to_the_next_process() -> None:
    """It had begun before, on a thread that the disk kept waiting."""
    files = MemoryFiles()
    directory = DataDirectory.open(files, "/data")
    directory.close()
    directory.note_failed_sync()
    assert DataDirectory.open(files.after_kill(), "/data").has_sync_failed


def test_who_is_kept_out_by_a_broker_whose_sync_has_failed_is_told_which(tmp_path: Path) -> None:
    open_directory(tmp_path).note_failed_sync()
    with pytest.raises(StorageError, match=f".process {os.getpid()}."):
        open_directory(tmp_path)


def test_a_directory_that_was_closed_can_be_opened_again(tmp_path: Path) -> None:
    open_directory(tmp_path).close()
    open_directory(tmp_path)


def test_a_directory_that_cannot_be_written_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot be used: Not a directory"):
        open_directory(tmp_path / "file" / "data")


def test_a_link_to_nothing_is_named_with_what_it_leads_to(tmp_path: Path) -> None:
    """It may be of a disk that is not mounted: nothing is made in its place."""
    (tmp_path / "link").symlink_to(tmp_path / "mount" / "data")
    with pytest.raises(
        StorageError, match=r"link is a link to .*/mount/data, and nothing is there"
    ):
        open_directory(tmp_path / "link")
    assert [each.name for each in tmp_path.iterdir()] == ["link"]


def test_what_is_no_directory_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("kept")
    for path in ("file", "file/data/more"):
        with pytest.raises(StorageError, match=f"{tmp_path}/file is no directory"):
            open_directory(tmp_path / path)
    assert (tmp_path / "file").read_text() == "kept"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_an_unwritable_directory_is_a_storage_error(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(StorageError, match="Permission denied"):
        open_directory(tmp_path)


def test_partitions_are_found_by_their_directories(tmp_path: Path) -> None:
    directory = open_directory(tmp_path)
    for partition in (TopicPartition("with-dash", 12), EVENTS):
        directory.create_partition(partition)
    (tmp_path / "lost+found").mkdir()
    assert directory.partitions() == [EVENTS, TopicPartition("with-dash", 12)]


def test_a_deleted_partition_frees_its_name_at_once_and_is_removed_later(tmp_path: Path) -> None:
    directory = open_directory(tmp_path)
    path = directory.create_partition(EVENTS)
    (Path(path) / "00000000000000000000.log").write_bytes(b"data")
    (marked,) = directory.mark_deleted([EVENTS], UUID(int=5))
    assert marked == f"{path}.{UUID(int=5).hex}-delete"
    assert directory.partitions() == []
    assert directory.deleted() == [marked]
    directory.create_partition(EVENTS)
    directory.remove(marked)
    assert (directory.partitions(), directory.deleted()) == ([EVENTS], [])


@pytest.mark.parametrize("name", ["events", "events-", "events-x", "-1", f"a-1.{'0' * 32}-delete"])
def test_a_name_that_is_no_partitions(name: str) -> None:
    assert partition_of(name) is None


def test_the_longest_topic_can_be_marked_too(tmp_path: Path) -> None:
    directory = open_directory(tmp_path)
    longest = [TopicPartition("t" * 249, number) for number in (0, 99999)]
    for partition in longest:
        directory.create_partition(partition)
    marked = directory.mark_deleted(longest, UUID(int=5))
    assert directory.deleted() == sorted(marked)


def test_what_is_not_there_is_marked_already(tmp_path: Path) -> None:
    directory = open_directory(tmp_path)
    directory.create_partition(EVENTS)
    both = [EVENTS, TopicPartition("events", 1)]
    assert len(directory.mark_deleted(both, UUID(int=5))) == 1
    assert directory.mark_deleted(both, UUID(int=5)) == []


@pytest.mark.parametrize("kept", [199, 200, 249])
def test_a_long_topic_is_not_taken_for_another_that_was_deleted(tmp_path: Path, kept: int) -> None:
    """Their directories are cut to the same name where it would be too long."""
    directory = open_directory(tmp_path)
    gone, other = TopicPartition("t" * kept, 0), TopicPartition("t" * 200 + "u" * 49, 0)
    assert gone != other
    directory.create_partition(gone)
    directory.mark_deleted([gone], UUID(int=(5 << 64) + 7))
    assert directory.is_marked_deleted(str(gone))
    assert not directory.is_marked_deleted(str(other))


def test_a_name_that_is_free_but_not_yet_on_the_disk_is_there_with_the_next_attempt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """There was no descriptor for the sync: what is passed over then was not made durable."""
    files = MemoryFiles()
    directory = DataDirectory.open(files, "/data")
    directory.create_partition(EVENTS)
    directory.sync()

    def refuse(path: str) -> None:
        raise OSError(errno.EMFILE, "no descriptor")

    with monkeypatch.context() as full:
        full.setattr(files, "sync_directory", refuse)
        with pytest.raises(OSError, match="no descriptor"):
            directory.mark_deleted([EVENTS], UUID(int=5))
    directory.mark_deleted([EVENTS], UUID(int=5))
    for disk in every_crash(files):
        assert DataDirectory.open(disk, "/data").partitions() == []
    before = len(files.synced_paths)
    directory.mark_deleted([EVENTS], UUID(int=5))
    assert len(files.synced_paths) == before
