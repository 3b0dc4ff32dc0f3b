"""Voters whose disks take their time elect a leader nevertheless, and keep it."""

import pytest

from tests.partitions.replication.cluster import Broker, Cluster
from tidemark.partitions.replication.outbox import Output
from tidemark.protocol.types import NodeId


class SlowCluster(Cluster):
    """A sync takes `latency_seconds`, and so does the next one behind it; a message takes 1 ms."""

    def __init__(self, count: int, *, latency_seconds: float) -> None:
        super().__init__(count)
        self._latency_seconds = latency_seconds
        self._syncing: dict[NodeId, tuple[float, list[Output]]] = {}
        for broker in self.brokers.values():
            broker.is_disk_slow = True

    def turn(self, broker: Broker) -> None:
        super().turn(broker)
        if broker.unwritten and broker.node_id not in self._syncing:
            self._syncing[broker.node_id] = (self.now + self._latency_seconds, broker.unwritten)
            broker.unwritten = []

    def run(self, seconds: float) -> None:
        end = self.now + seconds
        while self.now < end:
            self.now += 0.001
            for broker in self.brokers.values():
                if broker.node.next_deadline() <= self.now:
                    broker.node.tick(self.now)
                self._finish_sync(broker)
            self.step()

    def _finish_sync(self, broker: Broker) -> None:
        done, outputs = self._syncing.get(broker.node_id, (float("inf"), []))
        if done <= self.now:
            del self._syncing[broker.node_id]
            for output in outputs:
                broker.journal.write(output.records)
            broker.journal.sync()
            broker.node.persisted(outputs[-1].write)


@pytest.mark.parametrize("latency_seconds", [0.05, 0.3, 1.0])
def test_they_elect_a_leader_and_keep_it(latency_seconds: float) -> None:
    cluster = SlowCluster(3, latency_seconds=latency_seconds)
    cluster.open([1, 2, 3], preference=[1, 2, 3])
    before = cluster.now
    while not any(broker.replica().is_serving for broker in cluster.brokers.values()):
        cluster.run(0.1)
        assert cluster.now - before < 2 + 25 * latency_seconds
    cluster.run(5)
    epochs = {broker.replica().epoch for broker in cluster.brokers.values()}
    cluster.run(2)
    assert epochs == {broker.replica().epoch for broker in cluster.brokers.values()}
    assert len(epochs) == 1
