"""Brokers with a few hundredths of a processor elect leaders, later, but not again and again."""

from random import Random
from uuid import UUID

import pytest

from tests.partitions.replication.cluster import Broker, Cluster
from tidemark.partitions.replication.outbox import Output
from tidemark.partitions.replication.peer_messages import Heartbeat, PeerMessage
from tidemark.partitions.replication.timing import Timing
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.types import NodeId, TopicPartition


class StarvedCluster(Cluster):
    """A broker's turn takes `message_seconds` for each message that it takes in, and what comes of
    it leaves when it is over. Meanwhile messages wait, and so do timers."""

    def __init__(self, count: int, *, message_seconds: float, turn_messages_max: int = 200) -> None:
        super().__init__(count, timing=Timing())
        self.message_seconds = message_seconds
        self.rests_seconds = 0.0
        """How long others have the processor, by chance, after each turn."""
        self.rng = Random(1)
        self.turn_messages_max = turn_messages_max
        self.free_at = dict.fromkeys(self.brokers, self.now)
        self.unread: dict[NodeId, list[tuple[NodeId, PeerMessage]]] = {n: [] for n in self.brokers}
        self.leaving: dict[NodeId, dict[NodeId, list[PeerMessage]]] = {n: {} for n in self.brokers}
        self.durable: dict[NodeId, list[Output]] = {n: [] for n in self.brokers}

    def run(self, seconds: float) -> None:
        end = self.now + seconds
        while True:
            due = {n: self._due(broker) for n, broker in self.brokers.items()}
            node_id = min(due, key=due.__getitem__)
            self.now = max(self.now, due[node_id])
            if self.now >= end:
                return
            self._turn(self.brokers[node_id])

    def _due(self, broker: Broker) -> float:
        node_id = broker.node_id
        has_work = self.leaving[node_id] or self.unread[node_id] or self.durable[node_id]
        wakes = 0.0 if has_work else broker.node.next_deadline()
        return max(self.free_at[node_id], wakes, self.now)

    def _turn(self, broker: Broker) -> None:
        """What the last turn made leaves, and the next one begins: the clock first, then sockets,
        as chance would have it at worst."""
        node_id = broker.node_id
        for to, messages in self.leaving[node_id].items():
            self.unread[to] += [(node_id, message) for message in messages]
        self.leaving[node_id] = {}
        if broker.node.next_deadline() <= self.now:
            broker.node.tick(self.now)
        unread = self.unread[node_id]
        taken, unread[:] = unread[: self.turn_messages_max], unread[self.turn_messages_max :]
        for source, message in taken:
            broker.node.receive(source, message, self.now)
        for output in self.durable[node_id]:
            broker.node.persisted(output.write)
        self.durable[node_id] = []
        output = broker.take()
        written = sum(len(each.records) for each in broker.unwritten)
        for each in broker.unwritten:
            broker.journal.write(each.records)
        broker.journal.sync()
        self.durable[node_id], broker.unwritten = broker.unwritten, []
        self.leaving[node_id] = dict(output.sends)
        sent = [message for messages in output.sends.values() for message in messages]
        work = (
            sum(map(_work, [message for _, message in taken]))
            + (sum(map(_work, sent)) + written) / 2
        )
        self.free_at[node_id] = self.now + (1 + work) * self.message_seconds
        if self.rests_seconds:
            self.free_at[node_id] += self.rng.expovariate(1 / self.rests_seconds)


def _work(message: PeerMessage) -> float:
    """As many messages of one group as it is worth."""
    return 1 + len(message.groups) / 5 if isinstance(message, Heartbeat) else 1


KEYS = [PartitionKey(UUID(int=7), n) for n in range(60)]


def led(cluster: StarvedCluster) -> int:
    """How many of the groups are led by somebody who serves."""
    brokers = cluster.brokers.values()
    return sum(any(broker.replica(key).is_serving for broker in brokers) for key in KEYS)


def epochs(cluster: StarvedCluster) -> list[int]:
    return [max(broker.replica(key).epoch for broker in cluster.brokers.values()) for key in KEYS]


@pytest.mark.parametrize("message_seconds", [0.0001, 0.005, 0.02])
def test_they_elect_leaders_and_keep_them(message_seconds: float) -> None:
    """A message of a tenth of a millisecond's work at a fiftieth of a processor, and at less."""
    cluster = StarvedCluster(3, message_seconds=message_seconds)
    cluster.run(2)
    for n, key in enumerate(KEYS):
        preference = [1 + (n + i) % 3 for i in range(3)]
        cluster.open(key=key, partition=TopicPartition("t", n), preference=preference)
    before = cluster.now
    while led(cluster) < len(KEYS):
        cluster.run(0.5)
        assert cluster.now - before < 2 + 5_000 * message_seconds, f"{led(cluster)} of {len(KEYS)}"
    found = epochs(cluster)
    assert sum(found) < 5 * len(KEYS)
    cluster.run(20)
    assert led(cluster) == len(KEYS)
    assert epochs(cluster) == found


def settled() -> StarvedCluster:
    """Brokers with time enough; all groups are led."""
    cluster = StarvedCluster(3, message_seconds=0.00005)
    cluster.run(2)
    for n, key in enumerate(KEYS):
        preference = [1 + (n + i) % 3 for i in range(3)]
        cluster.open(key=key, partition=TopicPartition("t", n), preference=preference)
    cluster.run(8)
    assert led(cluster) == len(KEYS)
    return cluster


@pytest.mark.parametrize("rests_seconds", [0.3, 0.8])
def test_who_gets_little_of_a_processor_deposes_nobody(rests_seconds: float) -> None:
    """Nobody was lost: all leaders stay, though confirmations come after the failure timeout."""
    cluster = settled()
    before = epochs(cluster)
    cluster.message_seconds, cluster.rests_seconds = 0.002, rests_seconds
    for _ in range(120):
        cluster.run(0.5)
        assert led(cluster) == len(KEYS)
    assert epochs(cluster) == before


@pytest.mark.parametrize("message_seconds", [0.0005, 0.005])
def test_groups_that_lost_their_leader_have_one_candidate(message_seconds: float) -> None:
    """Two brokers stand still, and the third one's groups need a leader when they come back."""
    cluster = settled()
    before = sum(epochs(cluster))
    cluster.message_seconds = message_seconds
    for node_id in (NodeId(2), NodeId(3)):
        cluster.free_at[node_id] = cluster.now + 3
    cluster.run(3)
    assert led(cluster) < len(KEYS)
    cluster.run(1 + 1_200 * message_seconds)
    assert led(cluster) == len(KEYS)
    assert sum(epochs(cluster)) - before <= 1.2 * len(KEYS) / 3, "one election each, nearly"
