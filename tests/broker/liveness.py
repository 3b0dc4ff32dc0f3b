"""A cluster as one broker knows it: who is registered, who lives, who leads."""

import math
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import partial
from uuid import UUID

from tidemark.broker.metadata.brokers import Quorum
from tidemark.partitions.state_machines.cluster import ClusterState
from tidemark.partitions.state_machines.cluster_commands import RegisterBroker
from tidemark.partitions.state_machines.cluster_values import BrokerAddress
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.types import NO_EPOCH, Epoch, NodeId

ME, TWO, THREE = NodeId(1), NodeId(2), NodeId(3)


@dataclass
class FakeLiveness:
    alive: set[int] = field(default_factory=lambda: {2, 3})
    leaders: dict[PartitionKey, tuple[NodeId | None, Epoch]] = field(default_factory=dict)
    behind: tuple[NodeId, ...] = ()
    silent: float = math.inf

    def is_alive(self, node: NodeId) -> bool:
        return node in self.alive

    def silent_seconds(self, node: NodeId) -> float:
        return 0.0 if self.is_alive(node) else self.silent

    def leader_of(self, key: PartitionKey) -> tuple[NodeId | None, Epoch]:
        return self.leaders.get(key, (None, NO_EPOCH))

    def lagging(self, key: PartitionKey, nodes: Collection[NodeId]) -> Collection[NodeId]:
        return [node for node in nodes if node in self.behind]

    def quorum(self, key: PartitionKey) -> Quorum | None:
        return None


def registered(*numbers: int) -> ClusterState:
    state = ClusterState()
    for number in numbers:
        state.apply(
            RegisterBroker(
                at_version=state.version,
                node_id=NodeId(number),
                directory_id=UUID(int=number),
                incarnation=1,
                listeners={
                    "INSIDE": BrokerAddress(f"in{number}", 1),
                    "OUTSIDE": BrokerAddress(f"out{number}", 2),
                },
                peer=BrokerAddress(f"peer{number}", 3),
                rack=f"r{number}",
            )
        )
    return state


three = partial(registered, 3, 1, 2)
