"""After a crash, segments and `state.db` are brought up to the journal: all that was synced."""

from random import Random

import pytest

from tests.partitions.storage.batches import batch
from tests.partitions.storage.journal.node import (
    DATA,
    ME,
    VOTERS,
    Held,
    all_but_the_unjournaled,
    check_every_crash,
    crashed_in_every_way,
    new_node,
    position,
)
from tests.partitions.storage.journal.records import KEY, OTHER
from tidemark.partitions.raft.entries import EpochStart
from tidemark.partitions.raft.messages import HardState
from tidemark.partitions.storage.directory import DataDirectory
from tidemark.partitions.storage.journal import records
from tidemark.partitions.storage.journal.redo import redo
from tidemark.partitions.storage.state_db import (
    GroupSnapshot,
    StateDb,
)
from tidemark.protocol.types import Epoch, NodeId, Offset
from tidemark.testing.memory_files import MemoryFiles


def test_a_new_directory_has_nothing_to_redo() -> None:
    files = MemoryFiles()
    state = StateDb.open(":memory:")
    report = redo(files, DataDirectory.open(files, DATA), state)
    assert (report.blocks, report.partitions, report.damage) == (0, 0, ())
    assert report.start.owner == state.journal_owner


def test_batches_that_were_synced_in_the_journal_are_in_the_log() -> None:
    node = new_node()
    for size in range(0, 300, 20):
        node.append(KEY, 2, size=size)
        node.append(OTHER, size=size)
    node.sync()
    check_every_crash(node)


def test_votes_and_epochs_that_were_synced_in_the_journal_are_in_state_db() -> None:
    node = new_node()
    node.vote(KEY, 5, 2)
    node.begin_epoch(OTHER, 6)
    node.vote(OTHER, 7, None)
    node.vote(OTHER, 7, 3)
    node.sync()
    check_every_crash(node)
    assert node.power_failed(Random(1)).replicas[OTHER].vote == HardState(Epoch(7), NodeId(3))


@pytest.mark.parametrize("stored", [HardState(Epoch(9), None), HardState(Epoch(5), NodeId(2))])
def test_a_vote_never_goes_back(stored: HardState) -> None:
    node = new_node()
    node.vote(KEY, 5, 3)
    node.sync()
    node.replicas[KEY].vote = stored
    node.state.save([node.replicas[KEY].state(Offset(0))])
    assert node.killed().replicas[KEY].vote == stored


def test_a_tail_that_diverged_is_cut_and_written_over() -> None:
    node = new_node()
    for _ in range(6):
        node.append(KEY, 2, size=50)
    node.begin_epoch(KEY, 3)
    node.append(KEY, 3, size=90)
    node.sync()
    node.truncate(KEY, position(1, 8))
    node.sync()
    check_every_crash(node)
    node.begin_epoch(KEY, 2)
    node.append(KEY, size=70)
    node.begin_epoch(KEY, 4)
    for _ in range(5):
        node.append(KEY, size=70)
    node.sync()
    check_every_crash(node)


def test_a_truncation_whose_log_was_not_yet_cut_is_done_or_leaves_what_was_there() -> None:
    node = new_node()
    for _ in range(4):
        node.append(KEY, 2, size=50)
    node.begin_epoch(KEY, 3)
    node.append(KEY, 2, size=50)
    node.sync()
    node.checkpoint()
    node.staged.append(records.truncate(KEY, position(1, 4)))
    start = EpochStart(Epoch(4), Offset(4), ME, VOTERS)
    node.staged.append(records.epoch_start(KEY, start))
    data = batch(4, 1, size=33, epoch=4)
    node.staged.append(records.batches(KEY, data))
    node.sync()
    for after in crashed_in_every_way(node):
        held = after.replicas[KEY].held()
        assert [row.epoch for row in held.epochs] == [1, 4]
        assert held.batches == (*node.replicas[KEY].held().batches[:2], data)


def test_a_truncation_into_a_run_of_batches_keeps_those_before_it() -> None:
    node = new_node()
    run = b"".join(batch(offset, 2, epoch=1) for offset in range(0, 10, 2))
    node.replicas[KEY].log.append(run)
    node.staged.append(records.batches(KEY, run))
    node.sync()
    node.truncate(KEY, position(1, 6))
    check_every_crash(node)
    node.begin_epoch(KEY, 2)
    node.sync()
    check_every_crash(node)
    node.append(KEY)
    node.sync()
    check_every_crash(node)


def test_epochs_that_were_truncated_do_not_come_back() -> None:
    node = new_node()
    for epoch in (2, 3, 4):
        node.begin_epoch(KEY, epoch)
    node.append(KEY)
    node.sync()
    node.truncate(KEY, position(2, 0))
    node.begin_epoch(KEY, 5)
    node.sync()
    check_every_crash(node)
    assert [row.epoch for row in node.power_failed(Random(0)).replicas[KEY].epochs] == [1, 2, 5]


@pytest.mark.parametrize("start", [100, 3])
def test_a_log_that_was_reset_begins_anew(start: int) -> None:
    node = new_node()
    for _ in range(20):
        node.append(KEY, size=90)
    node.checkpoint()
    table = (EpochStart(Epoch(8), Offset(0), ME, VOTERS),)
    node.reset(KEY, position(8, start), table)
    node.sync()
    check_every_crash(node)
    for _ in range(3):
        node.append(KEY, size=44)
    node.sync()
    check_every_crash(node)
    node.move_start(KEY, Offset(start + 1))
    check_every_crash(node)


@pytest.mark.parametrize("log_start", [0, 15])
def test_a_reset_whose_log_was_not_yet_given_up_is_done(log_start: int) -> None:
    node = new_node()
    for _ in range(20):
        node.append(KEY, size=90)
    node.sync()
    node.move_start(KEY, Offset(log_start))
    node.checkpoint()
    table = (EpochStart(Epoch(8), Offset(0), ME, VOTERS),)
    node.staged.append(records.reset(KEY, position(8, 5), table, b"the state there"))
    node.sync()
    for after in crashed_in_every_way(node):
        assert after.replicas[KEY].held() == Held(table, node.replicas[KEY].vote, Offset(5), ())
        assert after.state.group_snapshot(KEY) == GroupSnapshot(position(8, 5), b"the state there")


def test_a_snapshot_that_the_start_has_moved_to_since_a_reset_is_kept() -> None:
    """Else the start would find a log that begins above its snapshot, and refuse it."""
    node = new_node()
    table = (EpochStart(Epoch(8), Offset(0), ME, VOTERS),)
    node.reset(KEY, position(8, 5), table, b"the state there")
    for _ in range(4):
        node.append(KEY)
    node.sync()
    own = GroupSnapshot(position(8, 8), b"the state three records later")
    node.state.save_group_snapshot(KEY, own)
    node.move_start(KEY, Offset(8))
    for after in crashed_in_every_way(node):
        assert after.replicas[KEY].log.start_offset == 8
        assert after.state.group_snapshot(KEY) == own


def test_a_log_start_is_not_forgotten() -> None:
    node = new_node()
    for _ in range(30):
        node.append(KEY, size=90)
    node.sync()
    node.move_start(KEY, Offset(25))
    check_every_crash(node)


@pytest.mark.parametrize("is_saved", [False, True])
def test_what_moved_the_start_is_beside_the_log_after_a_redo(is_saved: bool) -> None:
    node = new_node()
    for _ in range(30):
        node.append(KEY, size=90)
    node.sync()
    node.move_start(KEY, Offset(20), b"of what was below 20")
    node.move_start(KEY, Offset(25), b"of what was below 25")
    if is_saved:
        node.checkpoint()
    for after in crashed_in_every_way(node):
        assert after.replicas[KEY].log.snapshot_at_start() == b"of what was below 25"


def test_a_log_start_within_a_batch_whose_segment_was_lost() -> None:
    node = new_node()
    node.append(KEY, 5)
    node.append(KEY, 5)
    node.sync()
    node.move_start(KEY, Offset(7))
    check_every_crash(node)
    for seed in range(10):
        assert node.power_failed(Random(seed)).replicas[KEY].log.start_offset == 7


@pytest.mark.parametrize("steps", range(5))
def test_a_checkpoint_that_was_interrupted_loses_nothing(steps: int) -> None:
    node = new_node()
    for number in range(12):
        node.append(KEY, size=80)
        node.append(OTHER, size=30)
        if number == 4:
            node.begin_epoch(KEY, 2)
        if number == 6:
            node.checkpoint()
        if number == 9:
            node.truncate(OTHER, position(1, 8))
            node.begin_epoch(OTHER, 2)
    node.checkpoint(steps)
    node.sync()
    check_every_crash(node)


def test_after_a_checkpoint_there_is_nothing_to_redo() -> None:
    node = new_node()
    for _ in range(12):
        node.append(KEY, size=80)
    node.sync()
    node.checkpoint()
    after = node.power_failed(Random(1))
    assert (after.report.blocks, after.report.partitions) == (0, 0)
    assert all_but_the_unjournaled(after) == all_but_the_unjournaled(node)


def test_what_happened_since_the_mark_is_redone_upon_a_checkpoint_of_a_later_moment() -> None:
    """The rows are written after the mark was taken, and hold what happened meanwhile."""
    node = new_node()
    node.append(KEY, 4)
    node.sync()
    mark = node.journal.begin_checkpoint()
    node.begin_epoch(KEY, 3)
    node.append(KEY, 4)
    node.sync()
    node.truncate(KEY, position(1, 4))
    node.begin_epoch(KEY, 2)
    node.append(KEY, 2)
    node.begin_epoch(KEY, 5)
    node.sync()
    for replica in node.replicas.values():
        node.state.save([replica.state(replica.log.sync())], journal_start=mark)
    check_every_crash(node)
