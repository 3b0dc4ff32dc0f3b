"""The brokers of the cluster as this one sees them: who they are, where they are, who lives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from tidemark.broker.config.addresses import Address
from tidemark.broker.metadata.cluster_log import CLUSTER_KEY
from tidemark.partitions.state_machines.cluster import ClusterState
from tidemark.partitions.state_machines.cluster_values import BrokerMetadata
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.types import NO_EPOCH, Epoch, NodeId


class Liveness(Protocol):
    """What heartbeats tell: who lives, and who leads what."""

    def is_alive(self, node: NodeId) -> bool: ...

    def leader_of(self, key: PartitionKey) -> tuple[NodeId | None, Epoch]: ...


class Brokers:
    """The registered brokers, with what is known of them at this moment."""

    def __init__(
        self, node_id: NodeId, state: Callable[[], ClusterState], liveness: Liveness
    ) -> None:
        self._node_id = node_id
        self._state = state
        self._liveness = liveness

    def get(self, node_id: NodeId) -> BrokerMetadata | None:
        return self._state().brokers.get(node_id)

    def is_alive(self, node_id: NodeId) -> bool:
        """Whether it was heard of within the failure timeout; this broker always lives."""
        return node_id == self._node_id or self._liveness.is_alive(node_id)

    def living(self) -> list[BrokerMetadata]:
        """Those that can be connected to, by number."""
        brokers = self._state().brokers
        return [brokers[node_id] for node_id in sorted(brokers) if self.is_alive(node_id)]

    def address(self, node_id: NodeId, listener_name: str) -> Address | None:
        """Where a client of the listener so called reaches a broker.

        A broker without such a listener is shown at its first one; `None` is one that is not known.
        """
        broker = self.get(node_id)
        if broker is None or not broker.listeners:
            return None
        first = next(iter(broker.listeners.values()))
        return Address(*broker.listeners.get(listener_name, first))

    def leader_of(self, key: PartitionKey) -> tuple[NodeId | None, Epoch]:
        """Who leads a partition, `None` if nobody living is known to, and the newest epoch."""
        leader, epoch = self._liveness.leader_of(key)
        if leader is not None and not self.is_alive(leader):
            return None, epoch
        return leader, epoch

    @property
    def controller(self) -> NodeId | None:
        """Who leads the cluster's metadata, and so takes changes to it."""
        return self.leader_of(CLUSTER_KEY)[0]


class Alone:
    """Liveness in a cluster of one broker, which leads everything in the epoch of its replica."""

    def __init__(self, node_id: NodeId) -> None:
        self._node_id = node_id

    def is_alive(self, node: NodeId) -> bool:
        return node == self._node_id

    def leader_of(self, key: PartitionKey) -> tuple[NodeId | None, Epoch]:
        return self._node_id, NO_EPOCH
