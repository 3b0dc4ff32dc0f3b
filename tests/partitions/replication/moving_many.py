"""Many groups whose replicas move at the same time."""

from collections import Counter
from uuid import UUID

from tests.partitions.replication.cluster import Cluster
from tidemark.partitions.replication.reassigning import (
    Reassignments,
    ReassignmentTiming,
    ReplicaWish,
)
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.types import NodeId, TopicPartition

GROUPS = 10
TIMING = ReassignmentTiming(copies_max=2, waiting_looked_at_max=3)
BEFORE, AFTER = (1, 2, 3), tuple(map(NodeId, (2, 3, 4)))


class Many(Cluster):
    """Groups that are led by broker 1 and are all to be on other brokers."""

    def __init__(self, after: tuple[NodeId, ...] = AFTER) -> None:
        super().__init__(4)
        self.keys = [PartitionKey(UUID(int=100 + number), 0) for number in range(GROUPS)]
        for broker in self.brokers.values():
            for number, key in enumerate(self.keys):
                partition = TopicPartition("many", number)
                broker.open(BEFORE, preference=BEFORE, key=key, partition=partition)
        self.run(2.0)
        self.parts = {
            node: Reassignments(broker.node, timing=TIMING) for node, broker in self.brokers.items()
        }
        wishes = {key: ReplicaWish(after, 1) for key in self.keys}
        for node, part in self.parts.items():
            part.set_all(wishes, 2)
            self[node].node.peers.metadata_version = 2
        self.run(0.5)

    def look(self) -> None:
        for node in list(self.brokers):
            self.parts[node].look(self.now)
        self.run(0.02)

    def whys(self) -> Counter[str]:
        return Counter(state.why for _, state in self.parts[NodeId(1)].states())
