"""After a crash, partitions are there, deleted or come again as the journal has it."""

from random import Random
from uuid import UUID

from tests.partitions.storage.journal.node import (
    DATA,
    UNJOURNALED,
    check_every_crash,
    crashed_in_every_way,
    new_node,
)
from tests.partitions.storage.journal.records import KEY, OTHER
from tidemark.partitions.storage.directory import DataDirectory
from tidemark.partitions.storage.journal import records
from tidemark.partitions.storage.journal.redo import redo
from tidemark.partitions.storage.left_groups import left_epochs
from tidemark.partitions.storage.state_db import (
    Condition,
    PartitionKey,
    PartitionState,
)
from tidemark.protocol.types import TopicPartition


def test_a_partition_that_was_deleted_is_forgotten() -> None:
    node = new_node()
    node.append(KEY)
    node.staged.append(records.forget(KEY))
    node.sync()
    for after in crashed_in_every_way(node):
        assert KEY not in after.replicas
        assert OTHER in after.replicas


def test_a_deletion_that_a_crash_interrupted_is_finished() -> None:
    """Its record was durable, and its directory had not been renamed yet."""
    node = new_node()
    node.append(KEY)
    node.staged.append(records.forget(KEY))
    node.sync()
    for after in crashed_in_every_way(node):
        assert not after.files.exists(f"{DATA}/t7-0")
        assert [path.rpartition(".")[0] for path in after.directory.deleted()] == [f"{DATA}/t7-0"]


def test_a_later_partition_of_the_same_name_is_not_taken_for_the_deleted_one() -> None:
    node = new_node()
    node.append(KEY)
    node.staged.append(records.forget(KEY))
    node.sync()
    later = PartitionKey(UUID(int=123), 0)
    node.state.save([PartitionState(key=later, name="t7-0")])
    files = node.files.after_kill()
    redo(files, DataDirectory.open(files, DATA), node.state)
    assert files.exists(f"{DATA}/t7-0")
    assert KEY not in node.state.partition_states()


def test_a_partition_whose_directory_was_marked_deleted_is_forgotten_but_for_its_epoch() -> None:
    """The directory was renamed, and the record was not durable yet."""
    node = new_node()
    node.append(KEY)
    node.vote(KEY, 9, 2)
    node.sync()
    node.directory.mark_deleted([TopicPartition("t7", 0)], UUID(int=7))
    files = node.files.after_kill()
    report = redo(files, DataDirectory.open(files, DATA), node.state)
    assert (report.damage, report.damaged) == ((), frozenset())
    assert KEY not in node.state.partition_states()
    assert left_epochs(node.state) == {KEY: 9}


def test_the_epoch_of_a_partition_that_was_given_up_is_that_of_its_newest_record() -> None:
    node = new_node()
    node.vote(KEY, 9, 2)
    node.begin_epoch(KEY, 11)
    node.staged.append(records.forget(KEY))
    node.sync()
    node.directory.mark_deleted([TopicPartition("t7", 0)], UUID(int=7))
    files = node.files.after_kill()
    redo(files, DataDirectory.open(files, DATA), node.state)
    assert left_epochs(node.state) == {KEY: 11}


def test_a_partition_that_comes_back_has_nothing_of_the_one_before() -> None:
    node = new_node()
    node.append(KEY, size=90)
    node.vote(KEY, 9, 2)
    node.sync()
    node.delete(KEY)
    node.create(KEY)
    node.begin_epoch(KEY, 2)
    node.append(KEY, size=5)
    node.sync()
    check_every_crash(node)
    assert node.killed().replicas[KEY].epochs[0].epoch == 2


def test_a_partition_that_came_back_is_unclean_after_a_loss_of_power() -> None:
    node = new_node()
    node.append(UNJOURNALED)
    node.sync()
    node.delete(UNJOURNALED)
    node.create(UNJOURNALED, is_journaled=False)
    node.begin_epoch(UNJOURNALED, 3)
    node.append(UNJOURNALED)
    node.sync()
    after = node.power_failed(Random(1))
    assert after.replicas[UNJOURNALED].condition is Condition.UNCLEAN


def test_records_of_a_partition_that_is_not_recorded_are_passed_over() -> None:
    node = new_node()
    node.append(KEY)
    node.sync()
    node.state.forget_partitions([KEY])
    after = node.killed()
    assert (after.report.damage, KEY in after.replicas) == ((), False)
