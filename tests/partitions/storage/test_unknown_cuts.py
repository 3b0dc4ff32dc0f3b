"""Logs that were cut, to follow another one, where nothing is left that says so.

The journal says of a cut before it is made. Where that is damaged, `state.db` knows the log as it
was: its epochs, and a recovery point behind its end, or within what came from another leader.
"""

import json
from random import Random

import pytest

from tests.partitions.storage.batches import batch
from tidemark.partitions.raft.entries import Configuration, EpochStart
from tidemark.partitions.storage.log import Log
from tidemark.partitions.storage.settings import LogSettings
from tidemark.protocol.errors import StorageError
from tidemark.protocol.records.header import BatchHeader
from tidemark.protocol.types import Epoch, NodeId, Offset
from tidemark.testing.memory_files import MemoryFiles

DIRECTORY = "/p-0"
SETTINGS = LogSettings(segment_bytes=400, index_interval_bytes=100)
"""Four batches in a segment."""
END = 20
VOTERS = Configuration(voters=(NodeId(1), NodeId(2), NodeId(3)))
ROWS = (EpochStart(Epoch(3), Offset(0), NodeId(1), VOTERS),)
"""What is recorded."""


class Keeper:
    """A log, and what it was told of its batches: base offsets and epochs."""

    def __init__(
        self,
        files: MemoryFiles,
        recovery_point: int,
        *,
        may_begin_later: bool = False,
        may_end_earlier: bool = False,
    ) -> None:
        self.state: list[list[int]] = []
        self.log = Log.open(
            files,
            DIRECTORY,
            SETTINGS,
            recovery_point=Offset(recovery_point),
            epochs=ROWS if may_end_earlier else None,
            on_batch=self._on_batch,
            load_snapshot=self._load,
            take_snapshot=lambda: json.dumps(self.state).encode(),
            may_begin_later=may_begin_later,
            may_end_earlier=may_end_earlier,
        )

    def append(self, count: int, epoch: int) -> None:
        for _ in range(count):
            end = self.log.end_offset
            self.log.append(batch(end, size=20, epoch=epoch))
            self.state.append([end, epoch])

    def cut(self, offset: int) -> None:
        self.log.truncate(Offset(offset))
        del self.state[offset:]

    def _on_batch(self, header: BatchHeader) -> None:
        self.state.append([header.base_offset, header.partition_leader_epoch])

    def _load(self, payload: bytes) -> None:
        self.state = json.loads(payload)


def cut_log(at: int, appended: int, *, is_synced: bool) -> MemoryFiles:
    """Twenty batches of epoch 3, recorded; cut, and gone on with in epoch 5."""
    files = MemoryFiles()
    files.make_directory(DIRECTORY)
    files.sync_directory("/")
    keeper = Keeper(files, 0)
    keeper.append(END, epoch=3)
    keeper.log.close()
    keeper = Keeper(files, END)
    keeper.cut(at)
    keeper.append(appended, epoch=5)
    if is_synced:
        keeper.log.sync()
    return files


def check_cut(files: MemoryFiles, at: int) -> None:
    keeper = Keeper(files, END, may_end_earlier=True)
    assert keeper.log.end_offset == at
    assert keeper.state == [[offset, 3] for offset in range(at)]
    stored = keeper.log.read(Offset(0), bytes_max=1 << 20, end_offset=Offset(at)).read()
    assert b"".join(batch(offset, size=20, epoch=3) for offset in range(at)).startswith(stored)
    # And it is a log like another: it goes on, and is there the next time.
    keeper.append(3, epoch=3)
    keeper.log.close()
    again = Keeper(files, at + 3)
    assert again.state == [[offset, 3] for offset in range(at + 3)]


@pytest.mark.parametrize("is_synced", [False, True])
@pytest.mark.parametrize("appended", [0, 1, 3, 4, 7, 14])
def test_it_ends_where_it_was_cut(appended: int, *, is_synced: bool) -> None:
    for at in range(END + 1):
        files = cut_log(at, appended, is_synced=is_synced)
        check_cut(files.after_kill(), at)
        for seed in range(3):
            check_cut(files.after_crash(Random(seed)), at)


def logs_of(files: MemoryFiles) -> dict[str, int]:
    return {name: size for name, size in files.sizes(DIRECTORY).items() if name.endswith(".log")}


def test_a_segment_that_is_missing_between_others_was_not_cut() -> None:
    """Those behind it would be gone as well."""
    files = cut_log(END, 0, is_synced=True)
    files.remove(f"{DIRECTORY}/{8:020d}.log")
    before = logs_of(files)
    with pytest.raises(StorageError, match="the next segment begins at 12"):
        Keeper(files, END, may_end_earlier=True)
    assert logs_of(files) == before


@pytest.mark.parametrize("appended", [0, 1, 14])
def test_where_the_journal_is_whole_there_was_no_cut(appended: int) -> None:
    files = cut_log(5, appended, is_synced=True)
    before = logs_of(files)
    with pytest.raises(StorageError):
        Log.open(files, DIRECTORY, SETTINGS, recovery_point=Offset(END), epochs=ROWS)
    assert logs_of(files) == before


def trimmed(files: MemoryFiles, before: Offset) -> Keeper:
    """The log once its start has moved there, which is not known any more either."""
    log = Keeper(files, 0).log
    removal = log.delete_before(before)
    log.sync()
    removal.run()
    return Keeper(files, END, may_begin_later=True, may_end_earlier=True)


@pytest.mark.parametrize("at", [0, 3, 8])
def test_what_begins_with_another_log_is_not_where_this_one_began(at: int) -> None:
    """It would say of an offset that it has the epoch that came before the cut."""
    files = cut_log(at, 20, is_synced=True)
    keeper = trimmed(files, Offset(12))
    assert (keeper.log.start_offset, keeper.log.end_offset) == (0, 0)
    assert keeper.state == []
    keeper.append(3, epoch=3)
    keeper.log.close()
    assert Keeper(files, 3).state == [[offset, 3] for offset in range(3)]


def test_what_begins_with_its_own_begins_there() -> None:
    files = cut_log(14, 9, is_synced=True)
    keeper = trimmed(files, Offset(12))
    assert (keeper.log.start_offset, keeper.log.end_offset) == (12, 14)
