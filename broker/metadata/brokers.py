"""The brokers of the cluster as this one sees them: who they are, where they are, who lives."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Final, NamedTuple, Protocol

from tidemark.broker.config.addresses import Address
from tidemark.broker.metadata.cluster_log import CLUSTER_KEY
from tidemark.broker.network.requests import Session
from tidemark.partitions.state_machines.cluster import ClusterState
from tidemark.partitions.state_machines.cluster_values import BrokerMetadata
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.types import Epoch, NodeId, Offset
from tidemark.protocol.values import dataclass

_LED_SECONDS: Final = 1.0
"""Of a broker that dies, others lead what it led sooner."""


class Liveness(Protocol):
    """What heartbeats tell: who lives, and who leads what."""

    def is_alive(self, node: NodeId) -> bool: ...

    def silent_seconds(self, node: NodeId) -> float:
        """For how long nothing has come of a broker; infinite if nothing ever has."""
        ...

    def leader_of(self, key: PartitionKey) -> tuple[NodeId | None, Epoch]: ...

    def lagging(self, key: PartitionKey, nodes: Collection[NodeId]) -> Collection[NodeId]:
        """Which of these do not hold all that is committed, if this broker leads the group."""
        ...

    def quorum(self, key: PartitionKey) -> Quorum | None:
        """The group, if this broker leads it."""
        ...


class Standing(NamedTuple):
    """How far a replica has come, as its leader knows it."""

    node_id: NodeId
    end_offset: Offset
    """-1 if nothing is known."""
    is_caught_up: bool
    """Whether it holds all that the leader holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quorum:
    """A group as its leader sees it."""

    epoch: Epoch
    high_watermark: Offset
    voters: Sequence[Standing]
    learners: Sequence[Standing]


class ShownBroker(NamedTuple):
    """A broker as one client is told of it."""

    node_id: NodeId
    address: Address
    rack: str | None
    is_alive: bool


class Brokers:
    """The registered brokers, with what is known of them at this moment."""

    def __init__(
        self, node_id: NodeId, state: Callable[[], ClusterState], liveness: Liveness
    ) -> None:
        self.node_id = node_id
        self._state = state
        self._liveness = liveness
        self.is_full: Callable[[NodeId], bool] = lambda _: False
        """Whether a broker has said that its disk takes no records; known where the metadata are
        led, as soon as reports are gathered."""

    @property
    def registered(self) -> Sequence[NodeId]:
        """All of them, alive or not, in the order of their coming."""
        return list(self._state().brokers)

    def get(self, node_id: NodeId) -> BrokerMetadata | None:
        return self._state().brokers.get(node_id)

    def rack(self, node_id: NodeId) -> str | None:
        broker = self.get(node_id)
        return None if broker is None else broker.rack

    def is_alive(self, node_id: NodeId) -> bool:
        """Whether it was heard of within the failure timeout; this broker always lives."""
        return node_id == self.node_id or self._liveness.is_alive(node_id)

    @property
    def hears_all(self) -> bool:
        """Whether all brokers live, as far as is known here."""
        return all(map(self.is_alive, self.registered))

    @property
    def hears_most(self) -> bool:
        """Whether most brokers live, as far as is known here. Else this one may be cut off."""
        registered = self.registered
        return sum(map(self.is_alive, registered)) > len(registered) // 2

    @property
    def misses_some(self) -> bool:
        """Whether some brokers are not alive, as far as is known here, and all of them have been
        silent for so long that what they led is led by others: if it is not, as far as is known
        here, others may know better."""
        missing = [each for each in self.registered if not self.is_alive(each)]
        return bool(missing) and min(map(self._liveness.silent_seconds, missing)) >= _LED_SECONDS

    def shown_to(
        self, session: Session, *, dead_too: bool = False, silent_seconds_max: float = 0.0
    ) -> list[ShownBroker]:
        """The brokers that a client can connect to, by number, each where it can reach it.

        With `silent_seconds_max` those too that were heard within that time: most brokers that
        have just died are soon back. While nobody leads the metadata, as far as is known here,
        nobody is left out: this broker may be the one that is cut off, and its clients have to
        find the way to the others.
        """
        dead_too |= self.controller is None
        shown = []
        for node_id, broker in sorted(self._state().brokers.items()):
            is_alive = self.is_alive(node_id)
            address = self.address_for(node_id, session)
            if address is None:
                continue
            if is_alive or dead_too or self._liveness.silent_seconds(node_id) < silent_seconds_max:
                shown.append(ShownBroker(node_id, address, broker.rack, is_alive))
        return shown

    def address_for(self, node_id: NodeId, session: Session) -> Address | None:
        """Where a client reaches a broker: this one where it has, the others by that listener."""
        if node_id == self.node_id:
            return session.listener
        return self.address(node_id, session.listener_name)

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

    def lagging(self, key: PartitionKey, nodes: Collection[NodeId]) -> Collection[NodeId]:
        """Which of these do not hold all that is committed; known where the group is led."""
        return self._liveness.lagging(key, nodes)

    def quorum(self, key: PartitionKey) -> Quorum | None:
        """How the replicas of a group stand, if this broker leads it."""
        return self._liveness.quorum(key)

    @property
    def controller(self) -> NodeId | None:
        """Who leads the cluster's metadata, and so takes changes to it."""
        return self.leader_of(CLUSTER_KEY)[0]

    @property
    def controller_for_clients(self) -> NodeId | None:
        """The broker that clients are to send changes of the metadata to.

        In the moment in which nobody leads, that is this one, if most brokers live: one of them
        will lead, and what comes here waits and is passed on. Some clients that are told of no
        controller do not ask again. None where this broker may be the one that is cut off, and
        where it has heard who leads before it has applied where that one is: a client could not
        connect to it.
        """
        controller = self.controller
        if controller is None and self.hears_most:
            return self.node_id
        return controller if controller in self.registered else None
