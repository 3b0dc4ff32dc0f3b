"""A node without sockets: real topics on a real disk, for tests of handlers and of topics."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import trio

from tidemark.broker.config import Address, BrokerSettings
from tidemark.broker.groups.coordinator import GroupCoordinator, open_coordinator
from tidemark.broker.metadata.open_metadata import Metadata, open_metadata
from tidemark.broker.metadata.producer_ids import ProducerIds
from tidemark.broker.metrics import Metrics
from tidemark.broker.network.odd_events import OddEvents
from tidemark.broker.network.requests import RequestContext, Session
from tidemark.broker.network.timers import Timers
from tidemark.broker.network.turn import Turn
from tidemark.broker.node import Node, SystemClock
from tidemark.broker.replicas.disk import open_disk_writer
from tidemark.broker.replicas.recovery_points import RecoveryPoints
from tidemark.broker.replicas.replica_parts import ReplicaServices
from tidemark.partitions.storage.directory import DataDirectory
from tidemark.partitions.storage.file_cache import FileCache
from tidemark.partitions.storage.files import OsFiles
from tidemark.partitions.storage.state_db import StateDb
from tidemark.protocol.types import NodeId


def context(api_version: int, *, listener: Address | None = None) -> RequestContext:
    session = Session(
        connection_id=1,
        client_host="127.0.0.1",
        listener=listener or Address("127.0.0.1", 9092),
    )
    return RequestContext(api_version=api_version, client_id="test", session=session)


@asynccontextmanager
async def open_node(data_dir: Path, **settings: Any) -> AsyncIterator[Node]:  # Any: any setting
    """A node on `data_dir`, with its topics; opening the same again is a restart."""
    given = attrs.evolve(BrokerSettings(data_dir=data_dir), **settings)
    files, turn = OsFiles(), Turn()
    metrics = Metrics(topics_max=given.metrics_topics_max)
    directory = DataDirectory.open(files, str(data_dir))
    state = StateDb.open(directory.state_db_path)
    failures: list[OSError] = []
    try:
        async with open_disk_writer(turn=turn, failed=failures.append) as disk:
            services = ReplicaServices(
                files=files,
                readers=FileCache(files, open_max=100),
                directory=directory,
                state=state,
                disk=disk,
                recovery_points=RecoveryPoints(state),
                turn=turn,
                clock=SystemClock(),
                metrics=metrics,
                odd_events=OddEvents(logging.getLogger("tests")),
            )
            timers = Timers(turn.run)
            async with (
                open_metadata(given, services) as metadata,
                open_coordinator(
                    given, metadata.topics, timers=timers, clock=services.clock
                ) as coordinator,
                trio.open_nursery() as tasks,
            ):
                tasks.start_soon(timers.run)
                yield _node(given, metadata, services, coordinator, timers)
                tasks.cancel_scope.cancel()
    finally:
        state.close()
        directory.close()
    assert not failures


def _node(
    settings: BrokerSettings,
    metadata: Metadata,
    services: ReplicaServices,
    coordinator: GroupCoordinator,
    timers: Timers,
) -> Node:
    return Node(
        settings=settings,
        node_id=NodeId(settings.node_id),
        cluster_id=metadata.topics.cluster_id,
        topics=metadata.topics,
        brokers=metadata.brokers,
        controller=metadata.controller,
        producer_ids=ProducerIds(metadata.controller.allocate_producer_ids),
        coordinator=coordinator,
        timers=timers,
        disk=services.disk,
        metrics=services.metrics,
        clock=services.clock,
    )
