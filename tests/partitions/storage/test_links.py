"""Directories that are of another disk, by a link or by its mount, which may not be there."""

import os
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from tests.partitions.storage.journal.records import KEY
from tidemark.partitions.storage.directory import DataDirectory
from tidemark.partitions.storage.journal.redo import redo
from tidemark.partitions.storage.os_files import OsFiles
from tidemark.partitions.storage.state_db import Condition, PartitionState, StateDb
from tidemark.protocol.errors import StorageError
from tidemark.protocol.types import TopicPartition

EVENTS = TopicPartition("events", 0)
FILES = OsFiles()


@pytest.fixture
def directory(tmp_path: Path) -> DataDirectory:
    return DataDirectory.open(FILES, str(tmp_path / "data"))


@pytest.fixture
def state(directory: DataDirectory) -> Iterator[StateDb]:
    """With a partition that a journal has said something of; the journal is not there."""
    state = StateDb.open(directory.state_db_path)
    state.save([PartitionState(key=KEY, name="t-0")], journal_start=9)
    yield state
    state.close()


def assert_nothing_is_lost(state: StateDb) -> None:
    assert state.partition_states()[KEY].condition is Condition.CLEAN
    assert state.journal_start == 9


def test_a_journal_whose_disk_is_not_mounted_is_not_a_lost_one(
    directory: DataDirectory, state: StateDb, tmp_path: Path
) -> None:
    """Every replica counted as damaged from then on; one without others was not served again."""
    Path(directory.journal_path).symlink_to(tmp_path / "disk")
    with pytest.raises(FileExistsError, match=r"symbolic link to .*/disk, which is not there"):
        redo(FILES, directory, state)
    assert_nothing_is_lost(state)


def test_a_journal_that_is_an_empty_directory_may_be_of_a_disk_that_is_not_mounted(
    directory: DataDirectory, state: StateDb
) -> None:
    os.mkdir(directory.journal_path)
    with pytest.raises(StorageError, match="data/journal is empty, though there was a journal"):
        redo(FILES, directory, state)
    assert_nothing_is_lost(state)


@pytest.mark.parametrize("there", [(), ("journal", "journal/lost+found")])
def test_a_journal_is_lost_where_its_directory_is_removed_or_a_new_disk_is_there(
    directory: DataDirectory, state: StateDb, there: tuple[str, ...]
) -> None:
    for name in there:
        os.mkdir(f"{directory.path}/{name}")
    assert redo(FILES, directory, state).damaged == {KEY}


@pytest.mark.parametrize("name", ["link", "link/data"])
def test_a_data_directory_whose_disk_is_not_mounted_is_not_begun_anew(
    name: str, tmp_path: Path
) -> None:
    """What is made below where it will be is hidden later."""
    (tmp_path / "link").symlink_to(tmp_path / "disk")
    with pytest.raises(StorageError, match=r"File exists\. .*/link is a link to .*/disk, and noth"):
        DataDirectory.open(FILES, str(tmp_path / name))
    assert os.listdir(tmp_path) == ["link"]


def test_a_partition_that_is_a_link_is_removed_as_any_other(tmp_path: Path) -> None:
    """It was refused each time, and tried again and again."""
    directory = DataDirectory.open(FILES, str(tmp_path / "data"))
    (tmp_path / "disk").mkdir()
    (tmp_path / "disk" / "segment").write_text("")
    (tmp_path / "data" / f"{EVENTS}").symlink_to(tmp_path / "disk")
    for marked in directory.mark_deleted([EVENTS], UUID(int=1)):
        directory.remove(marked)
    assert os.listdir(tmp_path / "data") == ["lock"]
    assert os.listdir(tmp_path / "disk") == [], "the disk's own name is not the broker's"
