"""What a process that has just been started is told before its replicas are open."""

from __future__ import annotations

from tests.partitions.replication.cluster import Broker, Cluster
from tidemark.partitions.raft.messages import AppendRequest, Message, Opened
from tidemark.partitions.replication.peer_messages import GroupMessage
from tidemark.protocol.types import NodeId


class HeardCluster(Cluster):
    """Writes down what the groups send, and loses what it is told to."""

    def __init__(self, count: int) -> None:
        self.said: list[tuple[NodeId, Message]] = []
        self.loses: type[Message] | None = None
        super().__init__(count)

    def turn(self, broker: Broker) -> None:
        super().turn(broker)
        kept = []
        for source, to, message in self.pool:
            said = message.message if isinstance(message, GroupMessage) else None
            if said is not None and (to, said) not in self.said:
                self.said.append((to, said))
            if said is None or type(said) is not self.loses:
                kept.append((source, to, message))
        self.pool = kept

    def entries_to(self, node_id: int) -> int:
        return sum(to == node_id and isinstance(said, AppendRequest) for to, said in self.said)


def led_by_two() -> HeardCluster:
    cluster = HeardCluster(3)
    cluster.open(preference=[2, 1, 3])
    cluster.run(1)
    cluster[2].append("first")
    cluster.run(1)
    return cluster


def restart_three(cluster: HeardCluster) -> Broker:
    """Its process is there again and connected; its replica is not open."""
    left = cluster.kill(3)
    cluster[2].append("while it was away")
    cluster.run(1)
    back = cluster.start(3, *left)
    connect_three(cluster)
    return back


def connect_three(cluster: HeardCluster) -> None:
    cluster.said.clear()
    back = cluster[3].node
    for each in (cluster[1].node, cluster[2].node):
        each.peer_up(back.node_id, back.incarnation, cluster.now)
        back.peer_up(each.node_id, each.incarnation, cluster.now)


def test_a_replica_that_is_not_open_is_sent_nothing_and_all_that_it_lacks_once_it_is() -> None:
    cluster = led_by_two()
    back = restart_three(cluster)
    cluster.run(5)
    assert cluster.entries_to(3) == 0
    back.open([1, 2, 3], preference=[2, 1, 3])
    cluster.run(0.3)
    assert back.committed_values() == ["first", "while it was away"]


def test_where_it_has_to_be_asked_it_is_asked_at_once() -> None:
    cluster = led_by_two()
    left = cluster.kill(3)
    cluster[1].is_disk_slow = True
    cluster[2].append("not committed yet")
    cluster.run(0.1)
    assert cluster[2].committed_values() == ["first"]
    cluster.start(3, *left)
    connect_three(cluster)
    cluster.run(0.01)
    assert cluster.entries_to(3) == 1


def test_where_its_word_is_lost_it_is_sent_what_it_lacks_after_the_longest_wait() -> None:
    cluster = led_by_two()
    back = restart_three(cluster)
    cluster.loses = Opened
    back.open([1, 2, 3], preference=[2, 1, 3])
    cluster.run(cluster.timing.retry_max_seconds - 1)
    assert back.committed_values() == ["first"]
    cluster.run(2)
    assert back.committed_values() == ["first", "while it was away"]


def test_a_process_that_was_there_before_is_sent_at_once_what_was_lost() -> None:
    cluster = led_by_two()
    for each in (cluster[1].node, cluster[2].node):
        each.peer_down(NodeId(3), cluster.now)
    cluster[2].append("while it was not connected")
    cluster.turn(cluster[2])
    connect_three(cluster)
    cluster.run(0.01)
    assert cluster.entries_to(3) >= 1
    assert cluster[3].values() == ["first", "while it was not connected"]
