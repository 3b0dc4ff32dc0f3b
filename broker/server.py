"""A broker from its settings: everything is opened in order, and closed in the opposite one.

Signals are not its business: whoever opens it decides when its block ends, and however that
happens (even by being cancelled), what is in flight is answered and everything is synced, within
`stop.timeout.ms`.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, closing
from dataclasses import field
from functools import partial
from random import SystemRandom
from typing import Final

import trio

from tidemark.broker.background import open_background
from tidemark.broker.balancing.open_balancing import open_balancing
from tidemark.broker.config import Address, BrokerSettings
from tidemark.broker.groups.coordinator import open_coordinator
from tidemark.broker.handlers import HANDLERS, between_brokers
from tidemark.broker.handlers.passing_on import forwarded_to, not_yet
from tidemark.broker.http import Readiness, serve_http
from tidemark.broker.listening import open_listening
from tidemark.broker.metadata.introduction import describe_own
from tidemark.broker.metadata.open_metadata import open_metadata
from tidemark.broker.metadata.producer_ids import ProducerIds
from tidemark.broker.metrics import Limits, Metrics, Scrape
from tidemark.broker.moves.desk import open_moves
from tidemark.broker.network.accepting import BoundListener
from tidemark.broker.network.connections import Connections
from tidemark.broker.network.dispatch import Dispatcher
from tidemark.broker.network.odd_events import OddEvents
from tidemark.broker.network.reactor import Reactor
from tidemark.broker.network.timers import Timers
from tidemark.broker.network.turn import Turn
from tidemark.broker.node import Clock, Node, SystemClock
from tidemark.broker.node_figures import NodeFigures
from tidemark.broker.peers import (
    BoundPeerListener,
    PeerNetwork,
    open_peer_network,
)
from tidemark.broker.peers.calls import PeerHandler
from tidemark.broker.peers.network import FRAME_BYTES_MAX
from tidemark.broker.reassigning.open_reassigning import open_reassigning
from tidemark.broker.replicas.replica_parts import ReplicaServices
from tidemark.broker.replicas.services import open_services
from tidemark.broker.replicas.verifying import Verifier, by_coordinator
from tidemark.broker.transactions.coordinator import open_transactions
from tidemark.partitions.storage.files import Files, OsFiles
from tidemark.partitions.storage.refusals import why_it_ended
from tidemark.protocol.errors import StorageError
from tidemark.protocol.messages.peer.ask import AskRequest
from tidemark.protocol.messages.peer.forward import ForwardRequest
from tidemark.protocol.schema import Message
from tidemark.protocol.values import dataclass

FRAME_ROOM_BYTES: Final = 1 << 20
"""What may be around the largest batch in a frame between brokers."""
STOP_DISK_SECONDS: Final = 10.0
"""Once clients are answered, so long is waited for what the disk still has to take."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningBroker:
    """A broker that serves."""

    node: Node
    kafka_address: Address
    """Where clients on this machine connect, with the port that was really bound."""
    http_address: Address | None
    peer_address: Address
    """Where other brokers connect."""
    connections: Connections
    peers: PeerNetwork
    """The connections to other brokers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    """What is there before any topic is."""

    settings: BrokerSettings
    tasks: trio.Nursery
    turn: Turn
    reactor: Reactor
    timers: Timers
    metrics: Metrics
    odd_events: OddEvents
    clock: Clock
    readiness: Readiness
    on_end: list[Callable[[], None]] = field(default_factory=list)
    """What is done when the reactor ends."""


@asynccontextmanager
async def open_broker(
    settings: BrokerSettings, *, clock: Clock | None = None, files: Files | None = None
) -> AsyncIterator[RunningBroker]:
    """A broker that serves clients as long as this block lasts.

    Raises `StorageError` for a data directory that cannot be served and `OSError` for an address
    that cannot be listened on, before anything is served. A disk that fails later ends the block
    with a `StorageError`, perhaps in an `ExceptionGroup`.
    """
    turn = Turn()
    with open_listening(settings) as listening, closing(Reactor(turn)) as reactor:
        listeners, peer_listener, http = listening.clients, listening.peers, listening.http
        async with open_background() as tasks:
            parts = _Parts(
                settings=settings,
                tasks=tasks,
                turn=turn,
                reactor=reactor,
                timers=Timers(turn),
                metrics=Metrics(topics_max=settings.metrics_topics_max),
                odd_events=OddEvents(logger),
                clock=clock or SystemClock(),
                readiness=Readiness(),
            )
            tasks.start_soon(parts.timers.run)
            tasks.start_soon(_run_reactor, parts)
            scrape = Scrape(parts.metrics, _limits(settings))
            if http is not None:
                _serve_http(parts, http, scrape)
            async with (
                _open_node(parts, files or OsFiles(), peer_listener, listeners) as (node, peers),
                _serve_clients(parts, node, listeners) as connections,
            ):
                kafka_address = _shown(listeners[0])
                scrape.show(NodeFigures(node, str(kafka_address)))
                parts.readiness.serving()
                yield RunningBroker(
                    node=node,
                    kafka_address=kafka_address,
                    peer_address=peer_listener.advertised,
                    http_address=None if http is None else Address(*http.getsockname()[:2]),
                    connections=connections,
                    peers=peers,
                )


def _serve_http(parts: _Parts, bound: socket.socket, scrape: Scrape) -> None:
    parts.tasks.start_soon(
        partial(
            serve_http,
            bound,
            scrape,
            parts.readiness,
            wait_stop=trio.sleep_forever,
        )
    )


def _shown(bound: BoundListener) -> Address:
    host = bound.address.host
    local_host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return bound.listener.shown_to(local_host=local_host, bound_port=bound.address.port)


def _limits(settings: BrokerSettings) -> Limits:
    return Limits(
        partitions_max=settings.metrics_partitions_max, groups_max=settings.metrics_groups_max
    )


@asynccontextmanager
async def _open_node(
    parts: _Parts, files: Files, peers: BoundPeerListener, listeners: list[BoundListener]
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
            failed=_fail_stop(parts),
        ) as services,
        _open_network(parts, services, handlers, peers, listeners) as network,
        open_metadata(settings, services, network.own, network, handlers) as metadata,
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
        yield node, network


@asynccontextmanager
async def _open_network(
    parts: _Parts,
    services: ReplicaServices,
    handlers: Mapping[type[Message], PeerHandler],
    peers: BoundPeerListener,
    listeners: list[BoundListener],
) -> AsyncIterator[PeerNetwork]:
    """The other brokers: the replicas' messages pass here."""
    settings, driver = parts.settings, services.driver
    shown = {bound.listener.name: _shown(bound) for bound in listeners}
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


def _fail_stop(parts: _Parts) -> Callable[[OSError], None]:
    """What to do when the disk has failed: end the broker, for nothing is known about the disk."""

    async def raise_it(error: OSError) -> None:
        if isinstance(error, _NotTaken):
            raise StorageError(
                f"{parts.settings.data_dir} has not taken what was left in {STOP_DISK_SECONDS:.0f} "
                "seconds. Is it full? What was acknowledged is kept; a start needs room on it"
            ) from error
        raise StorageError(why_it_ended(error, str(parts.settings.data_dir))) from error

    return lambda error: parts.tasks.start_soon(raise_it, error)


class _NotTaken(OSError):
    """What was to be written when the broker stopped."""


@asynccontextmanager
async def _serve_clients(
    parts: _Parts, node: Node, listeners: list[BoundListener]
) -> AsyncIterator[Connections]:
    """Serve the listeners' clients; at the end answer what has come and take no more."""
    connections = Connections(
        settings=parts.settings,
        reactor=parts.reactor,
        turn=parts.turn,
        dispatcher=Dispatcher(
            node, HANDLERS, spawn=parts.tasks.start_soon, odd_events=parts.odd_events
        ),
        metrics=parts.metrics,
        odd_events=parts.odd_events,
        timers=parts.timers,
    )
    for bound in listeners:
        connections.listen(bound)
    parts.on_end.append(connections.close)
    parts.tasks.start_soon(connections.sweep)
    try:
        yield connections
    finally:
        parts.readiness.stopping()
        with trio.move_on_after(parts.settings.stop_timeout_ms / 1000, shield=True):
            await _drain(parts, node, connections)
        parts.turn.run(connections.close)
        await _give_up_a_full_disk(node)


async def _run_reactor(parts: _Parts) -> None:
    """Where it ends before its time, because something has failed, no client is left waiting."""
    try:
        await parts.reactor.run()
    finally:
        for close in parts.on_end:
            close()


async def _drain(parts: _Parts, node: Node, connections: Connections) -> None:
    connections.stop_accepting()
    connections.stop_reading()
    has_failed = node.disk.error is not None or parts.tasks.cancel_scope.cancel_called
    if not has_failed:
        parts.turn.run(partial(_release_waiting, node))
        await connections.wait_drained()


async def _give_up_a_full_disk(node: Node) -> None:
    """A disk without room is waited for as long as the broker runs, and not when it is to end:
    whoever saves what is left would wait with it, shielded."""
    with trio.move_on_after(STOP_DISK_SECONDS, shield=True) as waiting:
        # Not for what comes from now on: the leaders of other brokers go on, and a disk that takes
        # all they send may never be idle.
        await node.disk.wait_durable(node.disk.newest)
    if waiting.cancelled_caught:
        node.disk.fail(_NotTaken())


def _release_waiting(node: Node) -> None:
    """Answer the requests that wait for something that may never come."""
    node.coordinator.resign()
    node.transactions.resign()
    for topic in node.topics:
        for replica in topic.replicas:
            replica.release_fetches()
