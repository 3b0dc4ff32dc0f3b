"""Brokers that are being drained keep their votes, and lead only what nobody else can."""

from tests.partitions.replication.cluster import Cluster
from tidemark.partitions.replication.preference import election_order
from tidemark.protocol.types import NodeId

DRAINED = NodeId(2)


def draining(*, drained: int = DRAINED) -> Cluster:
    cluster = Cluster(3)
    for broker in cluster.brokers.values():
        broker.node.set_last_resorts([NodeId(drained)])
    cluster.open([1, 2, 3], preference=[2, 1, 3])
    return cluster


def test_elections_follow_the_preference_and_last_resorts_come_last() -> None:
    order = [NodeId(node) for node in (3, 1, 2)]
    assert list(election_order(order, ())) == [3, 1, 2]
    assert list(election_order(order, [NodeId(3)])) == [1, 2, 3]


def test_a_drained_broker_is_not_elected_where_another_can_be() -> None:
    cluster = draining()
    cluster.run(1)
    assert cluster.leader().node_id == 1
    cluster.kill(1)
    cluster.run(1)
    assert cluster.leader().node_id == 3


def test_a_drained_broker_is_elected_where_no_other_can_be() -> None:
    cluster = draining()
    cluster.run(1)
    # Broker 3 misses what the two others have committed.
    cluster.cut = {(1, 3), (2, 3)}
    cluster[1].append("a")
    cluster.run(0.2)
    cluster.kill(1)
    cluster.cut = set()
    cluster.run(4)
    assert cluster.leader().node_id == DRAINED
    assert cluster[2].committed_values() == ["a"]


def test_a_broker_that_is_resumed_is_elected_as_before() -> None:
    cluster = draining()
    for broker in cluster.brokers.values():
        broker.node.set_last_resorts([])
    cluster.run(1)
    assert cluster.leader().node_id == 2
