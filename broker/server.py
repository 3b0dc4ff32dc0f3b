"""A broker from its settings: everything is opened in order, and closed in the opposite one.

Signals are not its business: whoever opens it decides when its block ends, and however that
happens (even by being cancelled), what is in flight is answered and everything is synced, within
`stop.timeout.ms`.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, closing
from functools import partial

import trio

from tidemark.broker.background import open_background
from tidemark.broker.config import Address, BrokerSettings
from tidemark.broker.handlers import HANDLERS
from tidemark.broker.http import Readiness, serve_http
from tidemark.broker.listening import open_listening
from tidemark.broker.metrics import BadInput, Limits, Metrics, Scrape
from tidemark.broker.network.accepting import BoundListener
from tidemark.broker.network.connections import Connections
from tidemark.broker.network.dispatch import Dispatcher
from tidemark.broker.network.odd_events import OddEvents
from tidemark.broker.network.reactor import Reactor
from tidemark.broker.network.requests import Handler
from tidemark.broker.network.timers import Timers
from tidemark.broker.network.turn import Turn
from tidemark.broker.node import Clock, Node, SystemClock
from tidemark.broker.node_figures import NodeFigures
from tidemark.broker.open_node import open_node
from tidemark.broker.parts import Parts
from tidemark.broker.peers import PeerNetwork
from tidemark.broker.stopping import stop_serving
from tidemark.partitions.storage.files import Files
from tidemark.partitions.storage.os_files import OsFiles
from tidemark.protocol.errors import RequestError
from tidemark.protocol.values import dataclass

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningBroker:
    """A broker that serves."""

    node: Node
    kafka_address: Address
    """Where clients on this machine connect, with the port that was really bound."""
    listeners: Mapping[str, Address]
    """The same for each listener, by its name; the first of them is `kafka_address`."""
    http_address: Address | None
    peer_address: Address
    """Where other brokers connect."""
    connections: Connections
    peers: PeerNetwork
    """The connections to other brokers."""


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
            parts = Parts(
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
                open_node(parts, files or OsFiles(), peer_listener, listeners) as (node, peers),
                _serve_clients(parts, node, peers, listeners) as connections,
            ):
                kafka_address = listeners[0].advertised
                scrape.show(NodeFigures(node, str(kafka_address)))
                _warn_without_users(parts, node, listeners)
                parts.readiness.serving()
                yield RunningBroker(
                    node=node,
                    kafka_address=kafka_address,
                    listeners={each.listener.name: each.advertised for each in listeners},
                    peer_address=peer_listener.advertised,
                    http_address=None
                    if http is None
                    else Address(*http.getsockname()[:2]).from_here,
                    connections=connections,
                    peers=peers,
                )


def _serve_http(parts: Parts, bound: socket.socket, scrape: Scrape) -> None:
    parts.tasks.start_soon(
        partial(
            serve_http,
            bound,
            scrape,
            parts.readiness,
            wait_stop=trio.sleep_forever,
        )
    )


def _limits(settings: BrokerSettings) -> Limits:
    return Limits(
        partitions_max=settings.metrics_partitions_max, groups_max=settings.metrics_groups_max
    )


@asynccontextmanager
async def _serve_clients(
    parts: Parts, node: Node, peers: PeerNetwork, listeners: list[BoundListener]
) -> AsyncIterator[Connections]:
    """Serve the listeners' clients; at the end answer what has come and take no more."""
    connections = Connections(
        settings=parts.settings,
        reactor=parts.reactor,
        turn=parts.turn,
        dispatcher=Dispatcher(
            node, _handlers(parts, node), spawn=parts.tasks.start_soon, odd_events=parts.odd_events
        ),
        metrics=parts.metrics,
        odd_events=parts.odd_events,
        timers=parts.timers,
    )
    for bound in listeners:
        connections.listen(bound)
    # In a turn of its own: not all have heard yet of what has changed.
    node.quotas.when_changed(partial(parts.timers.after, 0, connections.let_go_on))
    parts.on_end.append(connections.close)
    parts.tasks.start_soon(connections.sweep)
    try:
        yield connections
    finally:
        await stop_serving(parts, node, peers, connections)


def _handlers(parts: Parts, node: Node) -> Mapping[int, Handler]:
    """What answers clients; behind gates, where there is an authorizer."""
    if not node.access.is_on:
        return HANDLERS
    from tidemark.broker.access.gated import GatedHandlers  # where there is none, not even loaded

    refusals = node.metrics.bad_input[BadInput.NOT_ALLOWED]

    def tell(error: RequestError) -> None:
        refusals.inc()
        parts.odd_events.warn("refused requests", "refused: %s", error.message)

    node.access.on_refused = tell
    return GatedHandlers(HANDLERS, node)


def _warn_without_users(parts: Parts, node: Node, listeners: list[BoundListener]) -> None:
    """The settings alone do not tell: there may be users in the metadata."""
    if parts.settings.users or len(node.cluster.state.users):
        return
    if any(bound.listener.requires_sasl for bound in listeners):
        logger.warning(
            "a listener asks for SASL, and there are no users yet, neither in the settings nor in "
            "the cluster: nobody can connect to it"
        )


async def _run_reactor(parts: Parts) -> None:
    """Where it ends before its time, because something has failed, no client is left waiting."""
    try:
        await parts.reactor.run()
    finally:
        for close in parts.on_end:
            close()
