"""Everything behind the sockets of clients, opened in order, and closed in the opposite one.

What needs a part that comes later is given it at the end: other brokers may call as soon as the
network is there, and are told that it is too early until there is a node to answer.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from random import SystemRandom
from typing import Final

from tidemark.broker.balancing.open_balancing import open_balancing
from tidemark.broker.groups.coordinator import open_coordinator
from tidemark.broker.handlers import between_brokers
from tidemark.broker.handlers.passing_on import forwarded_to, not_yet
from tidemark.broker.metadata.introduction import describe_own
from tidemark.broker.metadata.open_metadata import open_metadata
from tidemark.broker.metadata.producer_ids import ProducerIds
from tidemark.broker.moves.desk import open_moves
from tidemark.broker.network.accepting import BoundListener
from tidemark.broker.node import Node
from tidemark.broker.parts import Parts
from tidemark.broker.peers import BoundPeerListener, PeerNetwork, open_peer_network
from tidemark.broker.peers.calls import PeerHandler
from tidemark.broker.peers.network import FRAME_BYTES_MAX
from tidemark.broker.reassigning.open_reassigning import open_reassigning
from tidemark.broker.replicas.replica_parts import ReplicaServices
from tidemark.broker.replicas.services import open_services
from tidemark.broker.replicas.verifying import Verifier, by_coordinator
from tidemark.broker.stopping import fail_stop
from tidemark.broker.transactions.coordinator import open_transactions
from tidemark.broker.transactions.own_transactions import by_own
from tidemark.partitions.storage.files import Files
from tidemark.protocol.messages.peer.ask import AskRequest
from tidemark.protocol.messages.peer.forward import ForwardRequest
from tidemark.protocol.schema import Message

FRAME_ROOM_BYTES: Final = 1 << 20
"""What may be around the largest batch in a frame between brokers."""


@asynccontextmanager
async def open_node(
    parts: Parts, files: Files, peers: BoundPeerListener, listeners: list[BoundListener]
) -> AsyncIterator[tuple[Node, PeerNetwork]]:
    """Everything behind the sockets of clients."""
    settings = parts.settings
    handlers: dict[type[Message], PeerHandler] = {
        ForwardRequest: not_yet,
        AskRequest: between_brokers.not_yet,
    }
    asking = between_brokers.Asking()
    async with (
        open_services(
            settings,
            files,
            tasks=parts.tasks,
            turn=parts.turn,
            timers=parts.timers,
            clock=parts.clock,
            metrics=parts.metrics,
            odd_events=parts.odd_events,
            failed=fail_stop(parts),
        ) as services,
        _open_network(parts, services, handlers, peers, listeners) as network,
        open_metadata(
            settings, services, network.own, network, handlers, ask=network.ask_to_join
        ) as metadata,
        open_coordinator(
            settings,
            metadata.topics,
            services,
            timers=parts.timers,
            group_configs=lambda group_id: metadata.cluster.state.group_configs(group_id),
        ) as coordinator,
        open_transactions(
            settings, metadata.topics, services, asking.ask, timers=parts.timers
        ) as transactions,
        open_balancing(settings, metadata, services, network, handlers) as balancing,
        open_moves(settings, services, metadata, is_full=balancing.gathering.is_full) as moves,
        open_reassigning(
            settings, services, metadata, is_full=balancing.gathering.is_full
        ) as reassigning,
    ):
        node = Node(
            settings=settings,
            node_id=services.node_id,
            cluster_id=metadata.cluster_id,
            cluster=metadata.cluster,
            topics=metadata.topics,
            brokers=metadata.brokers,
            controller=metadata.controller,
            calls=network,
            producer_ids=ProducerIds(metadata.controller.allocate_producer_ids),
            coordinator=coordinator,
            verifier=Verifier(
                metadata.topics,
                parts.tasks,
                parts.turn,
                by_coordinator(transactions.find, asking.ask),
                at_once=by_own(transactions),
            ),
            transactions=transactions,
            moves=moves,
            reassigning=reassigning,
            balancing=balancing,
            disk=services.disk,
            room=services.room,
            metrics=parts.metrics,
            timers=parts.timers,
            clock=parts.clock,
        )
        handlers[ForwardRequest] = forwarded_to(node)
        handlers[AskRequest] = between_brokers.asked_of(node)
        asking.node = node
        parts.reactor.is_more_on_its_way = services.disk.commits.is_behind
        parts.reactor.is_much = services.driver.has_syncs
        services.disk.is_alone = parts.reactor.serves_one
        yield node, network


@asynccontextmanager
async def _open_network(
    parts: Parts,
    services: ReplicaServices,
    handlers: Mapping[type[Message], PeerHandler],
    peers: BoundPeerListener,
    listeners: list[BoundListener],
) -> AsyncIterator[PeerNetwork]:
    """The other brokers: the replicas' messages pass here."""
    settings, driver = parts.settings, services.driver
    shown = {bound.listener.name: bound.advertised for bound in listeners}
    own = describe_own(settings, services.run, shown, peers.advertised)
    async with open_peer_network(
        peers,
        own,
        events=driver,
        handlers=handlers,
        reactor=parts.reactor,
        turn=parts.turn,
        metrics=parts.metrics.peers,
        rng=SystemRandom(),
        # Brokers may be set differently, and tell each other more than clients' batches.
        frame_bytes_max=max(FRAME_BYTES_MAX, settings.socket_request_max_bytes + FRAME_ROOM_BYTES),
    ) as network:
        driver.send = network.send
        yield network
