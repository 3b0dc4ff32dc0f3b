"""A broker from its settings: everything is opened in order, and closed in the opposite one.

Signals are not its business: whoever opens it decides when its block ends, and however that
happens (even by being cancelled), what is in flight is answered and everything is synced, within
`stop.timeout.ms`.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial

import trio

from tidemark.broker.background import open_background
from tidemark.broker.config import Address, BrokerSettings
from tidemark.broker.groups.coordinator import open_coordinator
from tidemark.broker.handlers import HANDLERS
from tidemark.broker.http import Readiness, bind_http, serve_http
from tidemark.broker.metadata.open_metadata import open_metadata
from tidemark.broker.metadata.producer_ids import ProducerIds
from tidemark.broker.metrics import Limits, Metrics, Scrape
from tidemark.broker.network.connections import BoundListener, Connections, bind
from tidemark.broker.network.dispatch import Dispatcher
from tidemark.broker.network.odd_events import OddEvents
from tidemark.broker.network.reactor import Reactor
from tidemark.broker.network.timers import Timers
from tidemark.broker.network.turn import Turn
from tidemark.broker.node import Clock, Node, SystemClock
from tidemark.broker.node_figures import NodeFigures
from tidemark.broker.replicas.disk import open_disk_writer
from tidemark.broker.replicas.recovery_points import RecoveryPoints
from tidemark.broker.replicas.replica_parts import ReplicaServices
from tidemark.partitions.storage.directory import DataDirectory
from tidemark.partitions.storage.file_cache import FileCache
from tidemark.partitions.storage.files import Files, OsFiles
from tidemark.partitions.storage.state_db import StateDb
from tidemark.protocol.errors import StorageError
from tidemark.protocol.types import NodeId

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningBroker:
    """A broker that serves."""

    node: Node
    kafka_address: Address
    """Where clients on this machine connect, with the port that was really bound."""
    http_address: Address | None
    connections: Connections


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    """What is there before any topic is."""

    settings: BrokerSettings
    tasks: trio.Nursery
    turn: Turn
    timers: Timers
    metrics: Metrics
    odd_events: OddEvents
    clock: Clock
    readiness: Readiness


@asynccontextmanager
async def open_broker(
    settings: BrokerSettings, *, clock: Clock | None = None, files: Files | None = None
) -> AsyncIterator[RunningBroker]:
    """A broker that serves clients as long as this block lasts.

    Raises `StorageError` for a data directory that cannot be served and `OSError` for an address
    that cannot be listened on, before anything is served. A disk that fails later ends the block
    with a `StorageError`, perhaps in an `ExceptionGroup`.
    """
    with ExitStack() as sockets:
        listeners = [bind(listener) for listener in settings.client_listeners()]
        for bound in listeners:
            sockets.enter_context(bound.socket)
        http = None
        if settings.http_listen is not None:
            http = sockets.enter_context(bind_http(settings.http_listen))
        async with open_background() as tasks:
            turn = Turn()
            parts = _Parts(
                settings=settings,
                tasks=tasks,
                turn=turn,
                timers=Timers(turn.run),
                metrics=Metrics(topics_max=settings.metrics_topics_max),
                odd_events=OddEvents(logger),
                clock=clock or SystemClock(),
                readiness=Readiness(),
            )
            tasks.start_soon(parts.timers.run)
            scrape = Scrape(parts.metrics, _limits(settings))
            if http is not None:
                _serve_http(parts, http, scrape)
            async with (
                _open_node(parts, files or OsFiles()) as node,
                _serve_clients(parts, node, listeners) as connections,
            ):
                kafka_address = _shown(listeners[0])
                scrape.show(NodeFigures(node, str(kafka_address)))
                parts.readiness.serving()
                yield RunningBroker(
                    node=node,
                    kafka_address=kafka_address,
                    http_address=None if http is None else Address(*http.getsockname()[:2]),
                    connections=connections,
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
async def _open_node(parts: _Parts, files: Files) -> AsyncIterator[Node]:
    """Everything behind the sockets."""
    settings = parts.settings
    with ExitStack() as stack:
        directory = DataDirectory.open(files, str(settings.data_dir))
        stack.callback(directory.close)
        state = StateDb.open(directory.state_db_path)
        stack.callback(state.close)
        _check_node_id(state, directory.path, settings.node_id)
        async with open_disk_writer(
            turn=parts.turn, failed=_fail_stop(parts), observe=partial(_count_flush, parts.metrics)
        ) as disk:
            services = ReplicaServices(
                files=files,
                readers=FileCache(files),
                directory=directory,
                state=state,
                disk=disk,
                recovery_points=RecoveryPoints(state),
                turn=parts.turn,
                clock=parts.clock,
                metrics=parts.metrics,
                odd_events=parts.odd_events,
            )
            parts.tasks.start_soon(services.recovery_points.run)
            async with (
                open_metadata(settings, services) as metadata,
                open_coordinator(
                    settings, metadata.topics, timers=parts.timers, clock=parts.clock
                ) as coordinator,
            ):
                yield Node(
                    settings=settings,
                    node_id=NodeId(settings.node_id),
                    cluster_id=metadata.topics.cluster_id,
                    topics=metadata.topics,
                    brokers=metadata.brokers,
                    controller=metadata.controller,
                    producer_ids=ProducerIds(metadata.controller.allocate_producer_ids),
                    coordinator=coordinator,
                    disk=disk,
                    metrics=parts.metrics,
                    timers=parts.timers,
                    clock=parts.clock,
                )


def _count_flush(metrics: Metrics, seconds: float, logs: int) -> None:
    metrics.flush.observe(seconds)
    metrics.flushed_logs.inc(logs)


def _fail_stop(parts: _Parts) -> Callable[[OSError], None]:
    """What to do when a sync has failed: end the broker, for nothing is known about the disk."""

    async def raise_it(error: OSError) -> None:
        raise StorageError(
            f"a sync of {parts.settings.data_dir} failed: {error}. Nothing is known about the disk "
            "since, so the broker has stopped; records that were not acknowledged may be lost"
        ) from error

    return lambda error: parts.tasks.start_soon(raise_it, error)


def _check_node_id(state: StateDb, path: str, node_id: int) -> None:
    stored = state.meta("node_id")
    if stored is None:
        state.set_meta("node_id", str(node_id))
    elif int(stored) != node_id:
        raise StorageError(
            f"the data directory {path} belongs to node {stored}, and node.id is {node_id}: "
            "give it back its node id, or give this node a directory of its own"
        )


@asynccontextmanager
async def _serve_clients(
    parts: _Parts, node: Node, listeners: list[BoundListener]
) -> AsyncIterator[Connections]:
    """Serve the listeners' clients; at the end answer what has come and take no more."""
    reactor = Reactor(parts.turn)
    connections = Connections(
        settings=parts.settings,
        reactor=reactor,
        turn=parts.turn,
        dispatcher=Dispatcher(
            node, HANDLERS, spawn=parts.tasks.start_soon, odd_events=parts.odd_events
        ),
        metrics=parts.metrics,
        odd_events=parts.odd_events,
    )
    for bound in listeners:
        connections.listen(bound)
    parts.tasks.start_soon(_run_reactor, reactor, connections)
    parts.tasks.start_soon(connections.sweep)
    try:
        yield connections
    finally:
        parts.readiness.stopping()
        with trio.move_on_after(parts.settings.stop_timeout_ms / 1000, shield=True):
            await _drain(parts, node, connections)
        parts.turn.run(connections.close)


async def _run_reactor(reactor: Reactor, connections: Connections) -> None:
    """Where it ends before its time, because something has failed, no client is left waiting."""
    try:
        await reactor.run()
    finally:
        connections.close()


async def _drain(parts: _Parts, node: Node, connections: Connections) -> None:
    connections.stop_accepting()
    connections.stop_reading()
    has_failed = node.disk.error is not None or parts.tasks.cancel_scope.cancel_called
    if not has_failed:
        parts.turn.run(partial(_release_waiting, node))
        await connections.wait_drained()


def _release_waiting(node: Node) -> None:
    """Answer the requests that wait for something that may never come."""
    node.coordinator.resign()
    for topic in node.topics:
        for replica in topic.replicas:
            replica.release_fetches()
