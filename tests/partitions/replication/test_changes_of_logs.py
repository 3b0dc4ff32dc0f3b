"""What is done to logs once the journal says so: starts that move, resets, cuts."""

import errno
from random import Random

import pytest

from tests.partitions.replication.cluster import Cluster, alone, three
from tidemark.protocol.types import Offset


def test_followers_give_up_what_the_leader_has_given_up() -> None:
    cluster = three()
    for value in "abc":
        cluster[2].append(value)
    cluster.run(0.3)
    cluster[2].replica().move_log_start(Offset(2))
    cluster.run(0.5)
    assert [b.replica().log_start for b in cluster.brokers.values()] == [2, 2, 2]


def test_a_follower_below_the_log_start_is_reset_to_it() -> None:
    cluster = three()
    files, state = cluster.kill(3)
    for value in "abc":
        cluster[2].append(value)
    cluster.run(0.3)
    cluster[2].replica().move_log_start(Offset(2))
    back = cluster.start(3, files, state)
    back.open([1, 2, 3])
    cluster.run(3)
    assert back.replica().log_start == 2
    assert back.committed_values() == ["c"]
    files, state = cluster.kill(3)
    back = cluster.start(3, files, state)
    back.open([1, 2, 3])
    assert back.values() == ["c"]


def have_to_cut(cluster: Cluster) -> None:
    """Broker 2, which led and was alone with a record, hears of another in its place; its disk is
    slow, so the journal does not have that yet."""
    cluster.cut = {(2, 1), (2, 3), (1, 2), (3, 2)}
    cluster[2].append("lost")
    cluster.settle()
    cluster.run(1.5)
    cluster.leader().append("b")
    cluster.settle()
    cluster[2].is_disk_slow = True
    cluster.cut = set()
    cluster.run(1)


def test_files_are_cut_only_once_the_journal_says_so() -> None:
    cluster = three()
    cluster[2].append("a")
    cluster.settle()
    have_to_cut(cluster)
    assert cluster[2].values() == ["a", "lost"]
    assert not cluster[2].node.can_checkpoint
    cluster[2].sync()
    assert cluster[2].values() == ["a"]
    assert not cluster[2].replica().is_held
    cluster[2].is_disk_slow = False
    cluster.run(1)
    assert cluster[2].values() == ["a", "b"]


def test_after_a_checkpoint_the_journal_before_it_is_not_needed() -> None:
    cluster = three()
    cluster[2].append("a")
    cluster.run(0.3)
    for broker in cluster.brokers.values():
        broker.checkpoint()
    cluster[2].append("b")
    cluster.run(0.3)
    files, state = cluster.kill(1, Random(1))
    back = cluster.start(1, files, state)
    assert back.redone.partitions == 1
    back.open([1, 2, 3])
    assert back.values() == ["a", "b"]


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
@pytest.mark.parametrize("is_checkpointed", [False, True])
def test_a_log_that_cannot_be_cut_is_cut_by_the_next_start(
    is_checkpointed: bool, number: int
) -> None:
    cluster = three()
    cluster[2].append("a")
    cluster.run(0.3)
    have_to_cut(cluster)
    broken = cluster[2]
    assert broken.replica().is_held
    for output in broken.unwritten:
        broken.journal.write(output.records)
    broken.journal.sync()
    broken.files.failing_syncs, broken.files.sync_error = 1, number
    broken.node.persisted(broken.unwritten[-1].write)
    assert broken.replica().failure is not None
    failure = broken.take().disk_failure
    assert failure is not None
    assert failure.errno == number, "which ends the broker"
    assert broken.values() == ["a", "lost"]
    if is_checkpointed:
        broken.checkpoint()
    files, state = cluster.kill(2)
    back = cluster.start(2, files, state)
    back.open([1, 2, 3])
    assert back.values() == ["a"]
    cluster.run(3)
    assert back.committed_values() == ["a", "b"]


def test_the_log_start_may_move_to_what_was_appended_in_the_same_turn() -> None:
    cluster = alone(flush_commit=False)
    cluster[1].append("a", "b")
    cluster[1].replica().move_log_start(cluster[1].replica().high_watermark)
    assert cluster[1].replica().log_start == 2
    assert cluster[1].replica().group.shape.start_offset == 2
