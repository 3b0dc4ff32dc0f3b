"""A redo that is interrupted, and one that does not find what had been durable."""

from dataclasses import replace
from random import Random
from uuid import UUID

import pytest

from tests.partitions.storage.journal.interrupted import Interrupted, InterruptedFiles
from tests.partitions.storage.journal.node import (
    DATA,
    ME,
    UNJOURNALED,
    VOTERS,
    Node,
    all_but_the_unjournaled,
    copy_of,
    new_node,
    position,
)
from tests.partitions.storage.journal.records import BEGIN, KEY, OTHER
from tidemark.partitions.raft.entries import EpochStart
from tidemark.partitions.storage.directory import DataDirectory
from tidemark.partitions.storage.journal import records
from tidemark.partitions.storage.journal.blocks import PAGE_BYTES
from tidemark.partitions.storage.journal.records import JournalRecord
from tidemark.partitions.storage.journal.redo import redo
from tidemark.partitions.storage.refusals import SyncFailed
from tidemark.partitions.storage.state_db import Condition, PartitionKey, StateDb
from tidemark.protocol.errors import StorageError
from tidemark.protocol.types import Epoch, Offset
from tidemark.testing.memory_files import MemoryFiles

# Redo that is interrupted


def is_interrupted(files: InterruptedFiles, state: StateDb) -> bool:
    """Redo what the journal says, until the power fails; whether it did before the end."""
    try:
        redo(files, DataDirectory.open(files, DATA), state)
    except Interrupted:
        return True
    return False


def test_a_redo_that_is_interrupted_anywhere_is_begun_again() -> None:
    node = new_node()
    for _ in range(12):
        node.append(KEY, size=300)
        node.append(OTHER, size=30)
    node.checkpoint()
    node.begin_epoch(KEY, 3)
    node.append(KEY, size=30)
    node.sync()
    node.truncate(KEY, position(1, 7))
    node.begin_epoch(KEY, 4)
    for _ in range(8):
        node.append(KEY, size=200)
    node.reset(OTHER, position(9, 5), (EpochStart(Epoch(9), Offset(2), ME, VOTERS),))
    node.append(OTHER, size=30)
    node.sync()
    expected = all_but_the_unjournaled(node)
    interruptions = 0
    for syncs in range(100):
        files = InterruptedFiles(node.files.after_crash(Random(syncs)), syncs)
        state = copy_of(node.state)
        interruptions += is_interrupted(files, state)
        for seed in range(2):
            after = Node(files.after_crash(Random(seed)), copy_of(state), "next")
            assert all_but_the_unjournaled(after) == expected, (syncs, seed)
    assert 5 < interruptions < 90


@pytest.mark.parametrize(
    "said",
    [
        [records.log_start(KEY, Offset(9), b"the state there")],
        [
            records.truncate(KEY, position(1, 4)),
            records.epoch_start(KEY, EpochStart(Epoch(9), Offset(4), ME, VOTERS)),
        ],
        [records.reset(KEY, position(9, 20), (EpochStart(Epoch(9), Offset(20), ME, VOTERS),))],
        [records.forget(KEY)],
    ],
    ids=["the start has moved", "an end was cut off", "the log began anew", "it was deleted"],
)
@pytest.mark.parametrize("is_lost", [False, True], ids=["not synced", "the sync failed"])
def test_what_the_journal_has_in_the_page_cache_only_is_durable_before_it_is_done(
    said: list[JournalRecord], is_lost: bool
) -> None:
    """The process is killed in the middle of a sync; the machine loses power in the next start."""
    node = new_node()
    for _ in range(12):
        node.append(KEY, size=300)
    node.checkpoint()
    before = all_but_the_unjournaled(node)
    node.staged += said
    node.write()
    if is_lost:
        node.files.failing_syncs = 1
        with pytest.raises(SyncFailed):
            node.journal.sync()
    done = all_but_the_unjournaled(node.killed())
    assert done != before
    interruptions = 0
    for syncs in range(30):
        files = InterruptedFiles(node.files.after_kill(), syncs)
        state = copy_of(node.state)
        interruptions += is_interrupted(files, state)
        for seed in range(8):
            after = Node(files.after_crash(Random(seed)), copy_of(state), "next")
            assert all_but_the_unjournaled(after) in (before, done), (syncs, seed)
    assert 1 < interruptions < 29


def test_a_redo_whose_last_transaction_fails_is_begun_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    node = new_node()
    node.append(KEY, size=30)
    node.begin_epoch(KEY, 3)
    node.sync()

    def fail(*args: object, **kwargs: object) -> None:
        raise StorageError("no")

    for seed in range(10):
        with monkeypatch.context() as patch:
            patch.setattr(StateDb, "save", fail)
            with pytest.raises(StorageError):
                node.power_failed(Random(seed))
        assert all_but_the_unjournaled(node.power_failed(Random(seed))) == (
            all_but_the_unjournaled(node)
        )


def test_a_disk_that_is_full_stops_a_redo_and_changes_nothing() -> None:
    node = new_node()
    for _ in range(10):
        node.append(KEY, size=500)
    node.sync()
    files = MemoryFiles()
    for seed in range(50):
        files = node.files.after_crash(Random(seed))
        if f"{0:020d}.log" in files.sizes(f"{DATA}/t7-0"):
            log = files.open(f"{DATA}/t7-0/{0:020d}.log")
            if log.size() == 0:
                break
    full = files.after_kill()
    directory = DataDirectory.open(full, DATA)
    full.capacity_bytes = 0
    with pytest.raises(OSError, match="No space"):
        redo(full, directory, copy_of(node.state))
    full.capacity_bytes = None
    after = Node(full.after_kill(), node.state, "next")
    assert all_but_the_unjournaled(after) == all_but_the_unjournaled(node)


# Damage


def test_a_partition_whose_directory_is_gone_is_damaged_and_no_other() -> None:
    node = new_node()
    node.append(KEY)
    node.append(OTHER)
    node.sync()
    for name in node.files.sizes(f"{DATA}/t7-0"):
        node.files.remove(f"{DATA}/t7-0/{name}")
    node.files.remove_directory(f"{DATA}/t7-0")
    files = node.files.after_kill()
    report = redo(files, DataDirectory.open(files, DATA), node.state)
    assert report.damaged == {KEY}
    states = node.state.partition_states()
    assert states[KEY].condition is Condition.DAMAGED
    assert states[OTHER].condition is Condition.CLEAN


@pytest.mark.parametrize("recovery_point", [0, 5])
def test_a_log_that_ends_before_the_journal_goes_on_with_it_is_damaged(
    recovery_point: int,
) -> None:
    node = new_node()
    for _ in range(5):
        node.append(KEY, size=50)
    node.append(OTHER)
    node.sync()
    node.checkpoint()
    node.append(KEY, size=50)
    node.append(OTHER)
    node.sync()
    log = node.files.open(f"{DATA}/t7-0/{0:020d}.log")
    log.truncate(200)
    stored = node.state.partition_states()[KEY]
    node.state.save([replace(stored, recovery_point=Offset(recovery_point))])
    files = node.files.after_kill()
    report = redo(files, DataDirectory.open(files, DATA), node.state)
    assert report.damaged == {KEY}
    assert "t7-0 cannot be brought up to the journal" in report.damage[0]


def test_a_segment_that_is_damaged_where_the_journal_has_it_is_repaired() -> None:
    node = new_node()
    for _ in range(5):
        node.append(KEY, size=50)
    node.sync()
    expected = all_but_the_unjournaled(node)
    path = f"{DATA}/t7-0/{0:020d}.log"
    for byte in range(0, node.files.sizes(f"{DATA}/t7-0")[f"{0:020d}.log"], 17):
        disk = node.files.after_kill()
        log = disk.open(path)
        log.pwrite(bytes([log.pread(1, byte)[0] ^ 4]), byte)
        after = Node(disk, copy_of(node.state), "boot")
        assert all_but_the_unjournaled(after) == expected
        assert after.report.appended_bytes > 0


def test_a_log_whose_records_were_damaged_is_left_as_it_is() -> None:
    """The start of an epoch is lost, and batches of that epoch are in the log: not to be cut."""
    node = new_node()
    node.append(KEY, size=50)
    node.sync()
    node.checkpoint()
    node.begin_epoch(KEY, 2)
    node.write()
    at = BEGIN + (node.journal.next_lsn - 2) * PAGE_BYTES
    node.vote(KEY, 8, 3)
    node.append(KEY, size=50)
    node.sync()

    def damage(files: MemoryFiles) -> None:
        path = f"{DATA}/journal/0000.journal"
        assert files.open(path).pread(4, at) == b"TMJ1"
        files.open(path).pwrite(b"?", at + 80 + 2)

    path = f"{DATA}/t7-0/{0:020d}.log"
    files = node.files.after_kill()
    damage(files)
    before = files.open(path).pread(1000, 0)
    report = redo(files, DataDirectory.open(files, DATA), node.state)
    assert report.damaged == {KEY}
    assert files.open(path).pread(1000, 0) == before
    state = node.state.partition_states()[KEY]
    assert (state.condition, state.hard_state.epoch) == (Condition.DAMAGED, 8)
    assert f"{DATA}/journal/0000.journal.damaged" in [
        f"{DATA}/journal/{name}" for name in files.sizes(f"{DATA}/journal")
    ], "it is kept, for people to look at"


def test_damage_is_told_once_and_remembered() -> None:
    node = new_node()
    node.append(KEY)
    node.append(OTHER)
    node.sync()
    node.checkpoint()
    node.append(KEY)
    node.sync()
    files = node.files.after_kill()
    at = BEGIN + (node.journal.next_lsn - 2) * PAGE_BYTES
    files.open(f"{DATA}/journal/0000.journal").pwrite(b"?", at + 100)
    first = Node(files, node.state)
    assert first.report.damaged == {KEY}
    again = first.power_failed(Random(1))
    assert again.report.damage == ()
    assert again.replicas[KEY].condition is Condition.DAMAGED
    assert again.replicas[OTHER].condition is Condition.CLEAN


def test_a_journal_that_is_gone_makes_all_doubtful() -> None:
    node = new_node()
    node.append(KEY)
    node.checkpoint()
    node.append(KEY)
    node.sync()
    for name in node.files.sizes(f"{DATA}/journal"):
        node.files.remove(f"{DATA}/journal/{name}")
    node.files.remove_directory(f"{DATA}/journal")
    files = node.files.after_kill()
    report = redo(files, DataDirectory.open(files, DATA), node.state)
    assert report.damaged == {KEY, OTHER, UNJOURNALED}
    assert report.damage == (f"{DATA}/journal has no journal, though there was one",)


def test_two_hundred_partitions_are_redone() -> None:
    node = new_node()
    keys = [PartitionKey(UUID(int=8), number) for number in range(200)]
    for key in keys:
        node.create(key)
        node.begin_epoch(key, 1)
        node.append(key, size=100)
    node.sync()
    after = node.power_failed(Random(5))
    assert all_but_the_unjournaled(after) == all_but_the_unjournaled(node)
    assert after.report.partitions == 203
