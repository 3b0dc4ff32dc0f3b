"""Starting and stopping what a broker knows of its cluster, and the replicas that it hosts.

A start, in order:

1. what the directory says: which cluster it belongs to, the last snapshot of its metadata. A new
   directory founds a cluster, or asks to be taken into one;
2. the replica of the metadata's group. What is committed in its log is applied as soon as that is
   known: at once on a broker that votes alone, else when it has heard of a leader;
3. the registration of this start, with the leader. Once it is applied here, the state is current;
4. the replicas that are to be hosted here. If the registration takes long, because too few brokers
   are there, this is done before, with what is known: such brokers can still serve what they lead.
"""

from __future__ import annotations

import logging
import math
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

import trio

from tidemark.broker.compaction.cleaner import Cleaner
from tidemark.broker.config import Address, BrokerSettings
from tidemark.broker.metadata import upkeep
from tidemark.broker.metadata.brokers import Brokers
from tidemark.broker.metadata.cluster_log import ClusterLog
from tidemark.broker.metadata.cluster_replica import (
    ClusterReplica,
    GroupLiveness,
    open_cluster_replica,
)
from tidemark.broker.metadata.cluster_snapshots import ClusterSnapshots, keep_received, restore
from tidemark.broker.metadata.controller import Controller
from tidemark.broker.metadata.entry import join, refuse_another_cluster
from tidemark.broker.metadata.hosting import Hosting
from tidemark.broker.metadata.identity import (
    Identity,
    founder,
    joiner,
    peers_in,
    record,
    stored_identity,
    stored_peers,
)
from tidemark.broker.metadata.leaving import tell_when_left
from tidemark.broker.metadata.membership import Membership
from tidemark.broker.metadata.neighbours import Neighbours, Network
from tidemark.broker.metadata.non_voters import keep_following
from tidemark.broker.metadata.observer_keeping import keep_placing
from tidemark.broker.metadata.observers import Observing, keep_observing
from tidemark.broker.metadata.reception import CallAddress, Reception
from tidemark.broker.metadata.topic_creation import Placing
from tidemark.broker.metadata.topics import Topics
from tidemark.broker.metadata.voters import keep_voters
from tidemark.broker.peers.calls import PeerHandler
from tidemark.broker.replicas.opening import close_replicas
from tidemark.broker.replicas.replica import Replica
from tidemark.broker.replicas.replica_parts import ReplicaServices
from tidemark.broker.threads import run_in_thread
from tidemark.partitions.state_machines.cluster import ClusterState
from tidemark.partitions.state_machines.cluster_commands import (
    FoundCluster,
    SetBrokerState,
    UnregisterBroker,
)
from tidemark.partitions.state_machines.cluster_machine import (
    CLUSTER_TOPIC,
    ClusterMachine,
    Outcome,
)
from tidemark.partitions.state_machines.cluster_values import BrokerMetadata, BrokerState
from tidemark.protocol.errors import StorageError
from tidemark.protocol.messages.peer.forward import ProposeRequest
from tidemark.protocol.messages.peer.join import JoinRequest
from tidemark.protocol.schema import Message
from tidemark.protocol.types import NodeId
from tidemark.protocol.values import dataclass

REGISTRATION_SECONDS: Final = 1.0
"""How long the hosted replicas wait for it at a start."""
SWEEP_SECONDS: Final = 0.1
"""How long a start waits until what was deleted meanwhile is gone. With thousands of directories
it takes longer, beside the first requests: nobody needs it."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """What a broker knows of its cluster, and how it changes that."""

    cluster_id: str
    topics: Topics
    brokers: Brokers
    controller: Controller
    cluster: ClusterLog


@asynccontextmanager
async def open_metadata(
    settings: BrokerSettings,
    services: ReplicaServices,
    own: BrokerMetadata,
    network: Network,
    handlers: MutableMapping[type[Message], PeerHandler],
    *,
    ask: CallAddress,
) -> AsyncIterator[Metadata]:
    """The cluster's metadata, and all replicas that this broker hosts, as long as this block lasts.

    `own` is this start of the broker as it registers; `handlers` gets what answers other brokers;
    `ask` asks whoever is at an address to let this one in.
    Raises `StorageError` for a directory that is another broker's or another cluster's, or cannot
    be read, and `OSError` if the disk does not take what has to be recorded. If the cluster refuses
    this broker later, the block ends with a `StorageError`.
    """
    machine = ClusterMachine()
    identity = await _identify(settings, services, own, ask)
    await run_in_thread(restore, machine, services.state)
    network.enter(identity.cluster_id)
    neighbours = Neighbours(services, network, own)
    await neighbours.load()
    # First: who was away for long is sent a snapshot as soon as its replica is open.
    machine.on_received = partial(keep_received, services.state)
    replica = await open_cluster_replica(services, identity.voters, machine)
    hosting = Hosting(own.node_id, services, lambda: machine.state.version)
    try:
        parts = _Parts(
            settings, services, own, network, ask, identity, machine, neighbours, hosting, replica
        )
        handlers.update(parts.handlers())
        async with trio.open_nursery() as tasks:
            tasks.start_soon(parts.stay_registered)
            # Who votes alone waits for nothing but its disk.
            is_alone = parts.voters == (own.node_id,)
            with trio.move_on_after(math.inf if is_alone else REGISTRATION_SECONDS):
                await parts.registered.wait()
            await hosting.load(is_current=parts.registered.is_set())
            tasks.start_soon(parts.be_current)
            if parts.registered.is_set():
                with trio.move_on_after(SWEEP_SECONDS):
                    await parts.is_current.wait()
            for task in parts.tasks():
                tasks.start_soon(task)
            yield Metadata(
                cluster_id=identity.cluster_id,
                topics=parts.topics,
                brokers=parts.brokers,
                controller=parts.controller,
                cluster=parts.cluster,
            )
            tasks.cancel_scope.cancel()
    finally:
        services.leadership.stop(CLUSTER_TOPIC)
        with trio.CancelScope(shield=True):
            await close_replicas(services, [replica, *hosting])


async def _identify(
    settings: BrokerSettings, services: ReplicaServices, own: BrokerMetadata, ask: CallAddress
) -> Identity:
    """The cluster that the directory belongs to, from now on if it belonged to none before."""
    state, path = services.state, services.directory.path
    identity = await run_in_thread(stored_identity, settings, state, path)
    if identity is not None:
        peers = await run_in_thread(stored_peers, state)
        known = {(peer.address.host, peer.address.port) for peer in peers.values()}
        strange = [each for each in settings.join if (each.host, each.port) not in known]
        await refuse_another_cluster(own, identity.cluster_id, strange, ask, directory=path)
        return identity
    if settings.join:
        logger.info("asking to be taken in at %s", ", ".join(map(str, settings.join)))
        welcome = await join(own, settings.join, ask, cluster_id=settings.cluster_id)
        identity, peers = joiner(settings, welcome), peers_in(welcome)
    else:
        identity, peers = founder(settings), {}
    await run_in_thread(record, state, identity, peers)
    return identity


class _Parts:
    """All there is of it while it is open, put together."""

    def __init__(
        self,
        settings: BrokerSettings,
        services: ReplicaServices,
        own: BrokerMetadata,
        network: Network,
        ask: CallAddress,
        identity: Identity,
        machine: ClusterMachine,
        neighbours: Neighbours,
        hosting: Hosting,
        replica: Replica,
    ) -> None:
        self._settings = settings
        self._services = services
        self._network = network
        self._identity = identity
        self._machine = machine
        self._neighbours = neighbours
        self._group = ClusterReplica(replica, services)
        driver = services.driver
        self.cluster = ClusterLog(
            own.node_id,
            self._group,
            machine,
            turn=services.turn,
            clock=services.clock,
            older_than=self._older_than,
        )
        self.registered = trio.Event()
        self.is_current = trio.Event()
        """Set once what is here has been held against the metadata as they are."""
        self.brokers = Brokers(own.node_id, lambda: self.cluster.state, GroupLiveness(driver))
        self.controller = Controller(own.node_id, self.cluster, network)
        self._membership = Membership(
            own,
            identity.cluster_id,
            self.cluster,
            network,
            lambda: self._group.voters,
            Reception(
                Address(own.peer.host, own.peer.port),
                lambda: [*settings.join, *neighbours.addresses],
                ask,
                neighbours.welcomed,
            ),
        )
        self._hosting = hosting
        self._observing = Observing(driver.node, lambda: self.cluster.state)
        self.topics = Topics(
            settings,
            services,
            self.cluster,
            hosting,
            Placing(is_alive=self._takes_replicas, draw=secrets.SystemRandom().random),
            self.controller,
        )
        self._snapshots = ClusterSnapshots(
            machine, services.state, self._group, driver.wait_durable
        )
        self.cluster.listen(neighbours.applied)
        self.cluster.listen(self._states_applied)
        self._set_last_resorts()
        machine.on_restored = self._restored
        services.leadership.watch(CLUSTER_TOPIC, self._leadership_changed)
        services.turn.run(self._group.follow)

    @property
    def voters(self) -> tuple[NodeId, ...]:
        """Who votes on the metadata."""
        return self._group.voters

    def handlers(self) -> dict[type[Message], PeerHandler]:
        """What answers other brokers, but for the requests of their clients."""

        async def propose(_: NodeId | None, request: ProposeRequest) -> Message:
            return await self.controller.serve_propose(request)

        return {JoinRequest: self._membership.serve_join, ProposeRequest: propose}

    def tasks(self) -> list[Callable[[], Awaitable[None]]]:
        services, settings = self._services, self._settings
        driver = services.driver
        return [
            self._hosting.run,
            self._neighbours.run,
            self._keep_snapshots,
            partial(upkeep.remove_leftovers, self._hosting, services.directory),
            partial(upkeep.sweep, settings, services, self._hosting, lambda: self.cluster.state),
            *self._compaction(),
            partial(
                keep_voters,
                driver.node,
                lambda: self.cluster.state,
                self.brokers.is_alive,
                turn=services.turn,
                touch=driver.touch,
                wait_more=self._wait_more,
            ),
            partial(
                keep_following,
                driver.node,
                observes=self._observing.observes,
                turn=services.turn,
                touch=driver.touch,
            ),
            partial(
                keep_observing,
                self._observing,
                turn=services.turn,
                touch=driver.touch,
                wait_more=self._wait_more,
            ),
            partial(keep_placing, self.cluster, self.brokers.is_alive, wait_more=self._wait_more),
            partial(
                tell_when_left,
                self.brokers.node_id,
                lambda: self.cluster.state,
                lambda: self.voters,
                wait_more=self._wait_more,
            ),
        ]

    def _compaction(self) -> list[Callable[[], Awaitable[None]]]:
        if not self._settings.log_cleaner_enable:
            return []
        return [Cleaner(self._settings, self._services, self._hosting).run]

    async def _wait_more(self) -> None:
        await self.cluster.wait_version(self.cluster.state.version + 1)

    async def stay_registered(self) -> None:
        """Register, and from then on be current; end the broker if another one takes its place."""
        await self._membership.register(partial(_foundation, self._identity))
        self._neighbours.current(self.cluster.state)
        self.registered.set()
        await self._neighbours.wait_replaced()

    async def be_current(self) -> None:
        """Once registered: what is here of topics that were deleted meanwhile, goes."""
        await self.registered.wait()
        await self._hosting.be_current(lambda: self.cluster.state)
        self.is_current.set()

    def _leadership_changed(self, _: Replica) -> None:
        self.cluster.leadership_changed()
        self._group.follow()

    def _takes_replicas(self, node: NodeId) -> bool:
        """Whether new ones had better go there."""
        state = self.cluster.state.wishes.broker_state(node)
        is_able = self.brokers.is_alive(node) and not self.brokers.is_full(node)
        return is_able and state is not BrokerState.DECOMMISSIONING

    def _older_than(self, version: int) -> list[NodeId]:
        """The brokers that are there and speak no version so new with this one. Who is away, or was
        never seen, is not waited for: most of those who vote are there."""
        spoken = self._network.versions
        return [
            node
            for node in self.brokers.registered
            if self.brokers.is_alive(node) and spoken.get(node, version) < version
        ]

    def _states_applied(self, outcome: Outcome) -> None:
        if isinstance(outcome.command, SetBrokerState | UnregisterBroker):
            self._set_last_resorts()

    def _set_last_resorts(self) -> None:
        """Who is to lead nothing is to be elected last, from the first election of a start on."""
        state = self.cluster.state
        self._services.driver.node.set_last_resorts(
            node
            for node in state.brokers
            if state.wishes.broker_state(node) is not BrokerState.ACTIVE
        )

    def _restored(self) -> None:
        self._set_last_resorts()
        self._neighbours.restored(self.cluster.state)
        self.topics.reload()
        self.cluster.applied_more()

    async def _keep_snapshots(self) -> None:
        while True:
            await self.cluster.wait_version(self.cluster.state.version + 1)
            if self._snapshots.is_due:
                try:
                    await self._snapshots.take()
                except (OSError, StorageError) as error:
                    self._services.storage_failed(f"a snapshot of the metadata: {error}")


def _foundation(identity: Identity, state: ClusterState) -> FoundCluster:
    return FoundCluster(at_version=state.version, cluster_id=identity.cluster_id)
