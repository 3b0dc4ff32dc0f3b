"""The other brokers: connected to, heard, and found again after a restart.

Until this broker's view of the metadata is current, the brokers known from before stay known: the
metadata's log begins with a cluster of one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeVar

import trio

from tidemark.broker.config import Address
from tidemark.broker.metadata.identity import peers_in, peers_of, record_peers, stored_peers
from tidemark.broker.peers.hello import Peer
from tidemark.broker.replicas.replica_parts import ReplicaServices
from tidemark.broker.threads import run_in_thread
from tidemark.partitions.state_machines.cluster import ClusterState
from tidemark.partitions.state_machines.cluster_commands import UnregisterBroker
from tidemark.partitions.state_machines.cluster_machine import Outcome
from tidemark.partitions.state_machines.cluster_values import BrokerMetadata
from tidemark.protocol.errors import StorageError
from tidemark.protocol.messages.peer.join import JoinResponse
from tidemark.protocol.schema import Message
from tidemark.protocol.types import NodeId

R = TypeVar("R", bound=Message)


class Network(Protocol):
    """The connections to the other brokers."""

    @property
    def up(self) -> Mapping[NodeId, int]: ...

    @property
    def versions(self) -> Mapping[NodeId, int]: ...

    def enter(self, cluster_id: str) -> None: ...

    def registered(self) -> None: ...

    def set_peers(self, peers: Mapping[NodeId, Peer]) -> None: ...

    async def call(self, node: NodeId, request: Message, answer_type: type[R]) -> R: ...

    def trouble_with(self, node: NodeId) -> str: ...


class Neighbours:
    """All brokers of the cluster, as far as they are known here."""

    def __init__(self, services: ReplicaServices, network: Network, own: BrokerMetadata) -> None:
        self._services = services
        self._network = network
        self._own = own
        self._peers: dict[NodeId, Peer] = {}
        self._told: dict[NodeId, Peer] = {}
        """Those that the connections and the groups were told of last."""
        self._is_current = False
        self._changed = trio.Event()
        self._replaced = trio.Event()
        self._why_replaced = ""

    @property
    def addresses(self) -> list[Address]:
        """Where the others are, as far as that is known."""
        return [
            Address(peer.address.host, peer.address.port)
            for node, peer in self._peers.items()
            if node != self._own.node_id
        ]

    async def load(self) -> None:
        """Connect to those that were known when the broker was stopped, or taken in."""
        self._peers = await run_in_thread(stored_peers, self._services.state)
        self._connect()

    def applied(self, outcome: Outcome) -> None:
        """For the metadata: a command was applied."""
        broker = outcome.result
        if not isinstance(broker, BrokerMetadata):
            return
        if not isinstance(outcome.command, UnregisterBroker):
            self._look_at_own(broker)
            self._peers[broker.node_id] = Peer(broker.peer, broker.directory_id)
        elif self._is_current:
            self._peers.pop(broker.node_id, None)
        self._peers_changed()

    def current(self, state: ClusterState) -> None:
        """The metadata are current from now on: who is not in them does not belong."""
        self._is_current = True
        self._network.registered()
        self.restored(state)

    def restored(self, state: ClusterState) -> None:
        """The state was replaced as a whole."""
        known = peers_of(state.brokers.values())
        self._peers = known if self._is_current else {**self._peers, **known}
        for broker in state.brokers.values():
            self._look_at_own(broker)
        self._peers_changed()

    def welcomed(self, answer: JoinResponse) -> None:
        """A broker of the cluster has taken this one in, and says who there is."""
        if not self._is_current:
            self._peers = {**self._peers, **peers_in(answer)}
            self._peers_changed()

    async def wait_replaced(self) -> None:
        """Until another start of this broker has registered, or another broker that has got its
        number since it was removed; raises `StorageError` then."""
        await self._replaced.wait()
        raise StorageError(self._why_replaced)

    async def run(self) -> None:
        """Record where the others are, whenever that has changed."""
        while True:
            await self._changed.wait()
            self._changed = trio.Event()
            try:
                # A copy: the table itself may change while the thread goes through it.
                peers = {**self._peers}
                await run_in_thread(record_peers, self._services.state, peers)
            except StorageError as error:
                self._services.storage_failed(f"where the other brokers are: {error}")

    def _look_at_own(self, broker: BrokerMetadata) -> None:
        own = self._own
        if broker.node_id != own.node_id:
            return
        if broker.directory_id == own.directory_id:
            if broker.incarnation > own.incarnation:
                self._end(
                    f"broker {own.node_id} has been started again, and this start of it must end: "
                    "only one process may serve a data directory"
                )
        elif self._is_current:  # Else it is one that had the number before, and has left.
            self._end(
                f"broker {own.node_id} was removed from the cluster, and one with another data "
                "directory has its number now: this one must end"
            )

    def _end(self, why: str) -> None:
        self._why_replaced = why
        self._replaced.set()

    def _peers_changed(self) -> None:
        self._changed.set()
        self._connect()

    def _connect(self) -> None:
        self._services.turn.run(self._set_peers)

    def _set_peers(self) -> None:
        # One with another directory is another broker, which counts its starts anew: what the one
        # before it was known by goes first, or it would be taken for an earlier start of that one.
        same = {
            node: peer
            for node, peer in self._peers.items()
            if self._told.get(node, peer).directory_id == peer.directory_id
        }
        if len(same) < len(self._peers):
            self._tell(same)
        self._tell(self._peers)

    def _tell(self, peers: Mapping[NodeId, Peer]) -> None:
        self._told = {**peers}
        self._network.set_peers(peers)
        self._services.driver.node.set_peers(list(peers))
        self._services.driver.touch()
