"""A leader that is heard of and lost within one turn: nobody is told of it, and somebody stands."""

from tests.partitions.replication.cluster import KEY, Broker, Cluster, three
from tidemark.partitions.raft.messages import VoteRequest
from tidemark.partitions.replication.peer_messages import GroupBeat, GroupMessage, Heartbeat
from tidemark.protocol.types import ORIGIN, Epoch, NodeId, Offset

LEADER = NodeId(2)


def lonely(cluster: Cluster) -> Broker:
    """The third broker, which has lost sight of both others: it leaves the group alone."""
    alone = cluster[3]
    for other in (1, 2):
        alone.node.peer_down(NodeId(other), cluster.now)
    alone.take()
    assert alone.replica().leader is None
    alone.replica().preference = (alone.node_id, LEADER)  # it waits for nobody before it
    return alone


def resignation(of: Broker) -> Heartbeat:
    resigned = GroupBeat(KEY, Epoch(0), False, ORIGIN, Offset(0))
    return Heartbeat(
        incarnation=of.node.incarnation, sequence=2**62, acknowledges=0, groups=(resigned,)
    )


def stands(cluster: Cluster, broker: Broker) -> bool:
    """Whether it asks for votes within half a second."""
    for _ in range(50):
        cluster.now += 0.01
        broker.node.tick(cluster.now)
        said = [each for messages in broker.take().sends.values() for each in messages]
        if any(
            isinstance(each, GroupMessage) and isinstance(each.message, VoteRequest)
            for each in said
        ):
            return True
    return False


def test_a_leader_that_is_heard_again_only_to_resign_is_replaced() -> None:
    cluster = three()
    alone, leader = lonely(cluster), cluster[LEADER]
    alone.node.peer_up(LEADER, leader.node.incarnation, cluster.now)
    assert alone.replica().leader == LEADER
    alone.node.receive(LEADER, resignation(leader), cluster.now)
    alone.take()
    assert alone.replica().leader is None
    assert stands(cluster, alone)


def test_one_that_is_heard_again_and_leads_on_is_not() -> None:
    cluster = three()
    alone, leader = lonely(cluster), cluster[LEADER]
    alone.node.peer_up(LEADER, leader.node.incarnation, cluster.now)
    alone.take()
    assert not stands(cluster, alone)
    # As when a replica that could not be written to takes part again, of whose leader it knows.
    alone.node._campaigns.seek(alone.replica(), cluster.now)
    alone.node.tick(cluster.now)
    alone.take()
    assert alone.node.next_deadline() > cluster.now, "there is nothing to be done at once"
