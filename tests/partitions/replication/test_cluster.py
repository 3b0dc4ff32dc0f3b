"""Three brokers and one group: what was acknowledged stays, whoever dies."""

import pytest

from tests.partitions.replication.cluster import KEY, Cluster
from tidemark.partitions.replication.group_replica import Appended
from tidemark.partitions.storage.journal.records import RecordKind
from tidemark.protocol.types import Epoch, Offset


def alone(*, flush_commit: bool = True) -> Cluster:
    cluster = Cluster(1)
    cluster.open([1], flush_commit=flush_commit)
    cluster.run(0.01)
    return cluster


def test_a_single_voter_serves_once_its_vote_and_its_epoch_are_durable() -> None:
    cluster = Cluster(1)
    cluster.open([1])
    broker = cluster[1]
    broker.node.tick(cluster.now)
    kinds = []
    while not broker.replica().is_serving:
        kinds.append([record.kind for record in broker.take().records])
        broker.sync()
    assert kinds == [[RecordKind.HARD_STATE], [RecordKind.EPOCH_START]]


def test_a_single_voter_commits_what_is_synced() -> None:
    cluster = alone()
    broker = cluster[1]
    assert broker.append("a", "b") == Appended(Offset(0), Offset(2), Epoch(0))
    broker.take()
    assert broker.replica().high_watermark == 0
    broker.sync()
    broker.take()
    assert broker.replica().high_watermark == 2


def test_with_flush_os_an_append_is_the_commit() -> None:
    cluster = alone(flush_commit=False)
    cluster[1].append("a", "b")
    assert cluster[1].replica().high_watermark == 2
    assert not cluster[1].take().records


def three(**options: object) -> Cluster:
    cluster = Cluster(3)
    cluster.open([1, 2, 3], preference=[2, 1, 3], **options)
    cluster.run(1)
    return cluster


def test_three_voters_elect_the_preferred_one() -> None:
    cluster = three()
    assert cluster.leader() is cluster[2]
    assert all(b.node.leader_of(KEY) == (2, 0) for b in cluster.brokers.values())


def test_what_a_majority_holds_is_committed_everywhere() -> None:
    cluster = three()
    cluster[2].append("a", "b")
    assert cluster[2].replica().high_watermark == 0
    cluster.run(0.3)
    assert [b.committed_values() for b in cluster.brokers.values()] == [["a", "b"]] * 3


@pytest.mark.parametrize("flush_commit", [True, False])
def test_the_leader_dies_and_another_one_goes_on(flush_commit: bool) -> None:
    cluster = three(flush_commit=flush_commit)
    cluster[2].append("a")
    cluster.run(0.3)
    cluster.kill(2)
    cluster.run(0.5)
    leader = cluster.leader()
    leader.append("b")
    cluster.run(0.3)
    assert [b.committed_values() for b in cluster.brokers.values()] == [["a", "b"]] * 2


def test_a_tail_that_nobody_else_has_is_cut() -> None:
    cluster = three()
    cluster[2].append("a")
    cluster.settle()
    cluster.cut = {(2, 1), (2, 3)}
    cluster[2].append("lost")
    cluster.settle()
    files, state = cluster.kill(2)
    cluster.cut = set()
    cluster.run(1)
    cluster.leader().append("b")
    cluster.settle()
    back = cluster.start(2, files, state)
    back.open([1, 2, 3])
    assert back.values() == ["a", "lost"]
    cluster.run(1)
    assert back.committed_values() == ["a", "b"]
