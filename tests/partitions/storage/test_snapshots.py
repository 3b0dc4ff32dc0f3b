"""State that follows from the batches: snapshots spare reading them all again."""

import json

import pytest

from tests.partitions.storage.batches import batch
from tidemark.partitions.storage.log import Log
from tidemark.partitions.storage.settings import LogSettings
from tidemark.partitions.storage.snapshots import Snapshots
from tidemark.protocol.errors import StorageError
from tidemark.protocol.records.header import BatchHeader
from tidemark.protocol.types import Offset
from tidemark.testing.memory_files import MemoryFiles

DIRECTORY = "/p-0"
SETTINGS = LogSettings(segment_bytes=400, index_interval_bytes=100)  # four batches a segment


class Keeper:
    """Remembers the base offset of every batch, and from where it was told of them."""

    def __init__(self, files: MemoryFiles, recovery_point: int, start_offset: int = 0) -> None:
        self.state: list[int] = []
        self.told: list[int] = []
        self.refused: set[int] = set()
        self.log = Log.open(
            files,
            DIRECTORY,
            SETTINGS,
            recovery_point=Offset(recovery_point),
            start_offset=Offset(start_offset),
            on_batch=self.on_batch,
            load_snapshot=self.load,
            take_snapshot=self.take,
        )

    def on_batch(self, header: BatchHeader) -> None:
        self.state.append(header.base_offset)
        self.told.append(header.base_offset)

    def load(self, snapshot: bytes) -> None:
        state = json.loads(snapshot)
        if state is None:
            raise StorageError("a snapshot of another format")
        self.state = state

    def take(self) -> bytes:
        return json.dumps(self.state).encode()

    def append(self, count: int) -> None:
        for _ in range(count):
            base_offset = self.log.end_offset
            self.log.append(batch(base_offset, size=20))
            self.state.append(base_offset)


@pytest.fixture
def files() -> MemoryFiles:
    """Ten batches, synced; snapshots at 4 and 8."""
    files = MemoryFiles()
    files.make_directory(DIRECTORY)
    keeper = Keeper(files, 0)
    keeper.append(10)
    keeper.log.sync()
    return files


def offsets(files: MemoryFiles) -> list[int]:
    return list(Snapshots(files, DIRECTORY).offsets())


def test_a_snapshot_is_taken_at_every_roll(files: MemoryFiles) -> None:
    assert offsets(files) == [4, 8]


def test_after_a_crash_only_what_is_behind_the_snapshot_is_read(files: MemoryFiles) -> None:
    keeper = Keeper(files, 9)
    assert keeper.told == [8, 9]
    assert keeper.state == list(range(10))


def test_a_snapshot_above_the_recovery_point_is_not_believed(files: MemoryFiles) -> None:
    keeper = Keeper(files, 6)
    assert keeper.told == list(range(4, 10))
    assert keeper.state == list(range(10))


def test_after_a_close_nothing_is_read(files: MemoryFiles) -> None:
    Keeper(files, 9).log.close()
    keeper = Keeper(files, 10)
    assert (keeper.told, keeper.state) == ([], list(range(10)))


def test_a_damaged_snapshot_costs_time_and_nothing_else(files: MemoryFiles) -> None:
    files.open(f"{DIRECTORY}/{8:020d}.snapshot").pwrite(b"?", 6)
    keeper = Keeper(files, 9)
    assert keeper.told == list(range(4, 10))
    assert keeper.state == list(range(10))


def test_a_snapshot_that_its_owner_cannot_read_is_passed_over(files: MemoryFiles) -> None:
    Snapshots(files, DIRECTORY).save(Offset(8), b"null", log_start=Offset(0))
    keeper = Keeper(files, 9)
    assert keeper.told == list(range(4, 10))


def test_without_snapshots_all_is_read(files: MemoryFiles) -> None:
    for offset in offsets(files):
        files.remove(f"{DIRECTORY}/{offset:020d}.snapshot")
    assert Keeper(files, 9).told == list(range(10))


def test_the_two_newest_are_kept(files: MemoryFiles) -> None:
    keeper = Keeper(files, 9)
    keeper.append(10)
    keeper.log.sync()
    assert offsets(files) == [12, 16]


def test_and_the_one_with_which_the_start_has_moved(files: MemoryFiles) -> None:
    keeper = Keeper(files, 9)
    keeper.log.delete_before(Offset(9), keeper.take()).run()
    keeper.log.sync()
    keeper.append(10)
    keeper.log.sync()
    assert offsets(files) == [9, 12, 16]
    keeper.log.truncate(Offset(10))
    assert offsets(files) == [9]
    assert keeper.log.snapshot_at_start() == json.dumps(list(range(10))).encode()


def test_a_snapshot_of_before_what_is_gone_is_not_believed(files: MemoryFiles) -> None:
    keeper = Keeper(files, 9)
    keeper.log.delete_before(Offset(9)).run()
    files.remove(f"{DIRECTORY}/{8:020d}.snapshot")
    assert Keeper(files, 9, start_offset=8).state == [8, 9]


def test_what_moved_the_start_is_at_hand_before_it_is_written(files: MemoryFiles) -> None:
    keeper = Keeper(files, 10)
    keeper.log.delete_before(Offset(9), b"[0, 8]").run()
    keeper.append(1)
    keeper.log.truncate(Offset(10))
    keeper.log.observe(load_snapshot=keeper.load, on_batch=keeper.on_batch)
    assert keeper.state == [0, 8, 9]
    assert offsets(files) == [4, 8]
    keeper.log.sync()
    assert offsets(files) == [8, 9]


def test_a_reset_log_goes_on_from_what_came_with_it(files: MemoryFiles) -> None:
    keeper = Keeper(files, 10)
    keeper.log.reset(Offset(20), b"[19]")
    keeper.append(1)
    keeper.log.sync()
    assert offsets(files) == [20]
    again = Keeper(files, 21, start_offset=20)
    assert again.state == [19, 20]


def test_a_truncation_removes_snapshots_of_what_is_gone(files: MemoryFiles) -> None:
    keeper = Keeper(files, 9)
    keeper.log.truncate(Offset(7))
    assert offsets(files) == [4]


def test_a_cut_removes_snapshots_of_what_is_gone(files: MemoryFiles) -> None:
    files.open(f"{DIRECTORY}/{4:020d}.log").truncate(10)
    assert Keeper(files, 4).log.end_offset == 4
    assert offsets(files) == [4]


@pytest.mark.parametrize("is_reset", [False, True])
def test_who_cuts_a_log_forgets_snapshots_that_are_yet_to_be_written(is_reset: bool) -> None:
    files = MemoryFiles()
    files.make_directory(DIRECTORY)
    keeper = Keeper(files, 0)
    keeper.append(6)  # one is taken at 4
    if is_reset:
        keeper.log.reset(Offset(0))
    else:
        keeper.log.truncate(Offset(2))
    keeper.append(1)
    keeper.log.sync()
    assert Snapshots(files, DIRECTORY).offsets() == []
