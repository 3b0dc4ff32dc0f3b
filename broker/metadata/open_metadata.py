"""Starting and stopping what holds the topics: state, logs, and the sweeps over them."""

import logging
import secrets
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final

import trio

from tidemark.broker.config import BrokerSettings
from tidemark.broker.metadata.brokers import Alone, Brokers
from tidemark.broker.metadata.cluster_store import ClusterStore
from tidemark.broker.metadata.controller import Controller, NoCalls
from tidemark.broker.metadata.hosting import Hosting, move_away
from tidemark.broker.metadata.topic_creation import Placing
from tidemark.broker.metadata.topics import Topics
from tidemark.broker.replicas.opening import close_replicas
from tidemark.broker.replicas.replica_parts import ReplicaServices
from tidemark.partitions.state_machines.cluster import ClusterState
from tidemark.partitions.state_machines.cluster_commands import FoundCluster, RegisterBroker
from tidemark.partitions.state_machines.cluster_values import BrokerAddress
from tidemark.partitions.storage.directory import DataDirectory
from tidemark.partitions.storage.state_db import StateDb
from tidemark.protocol.errors import CorruptBatch, StorageError
from tidemark.protocol.types import NodeId

FIRST_SWEEP_SECONDS_MAX: Final = 30.0

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """What a broker knows of its cluster, and how it changes that."""

    topics: Topics
    brokers: Brokers
    controller: Controller


@asynccontextmanager
async def open_metadata(
    settings: BrokerSettings, services: ReplicaServices
) -> AsyncIterator[Metadata]:
    """The cluster's metadata, and all replicas that this broker hosts, as long as this block lasts.

    Raises `StorageError` for a directory that is another broker's, or cannot be read, and
    `OSError` if the disk does not take what has to be recorded.
    """
    store = await trio.to_thread.run_sync(_open_store, settings, services)
    if store.state.cluster_id is None:
        await store.propose(partial(_foundation, settings))
    await store.propose(partial(_registration, settings, services.state))
    # One broker is alive, for it is this one.
    placing = Placing(is_alive=lambda _: True, draw=secrets.SystemRandom().random)
    node_id = NodeId(settings.node_id)
    hosting = Hosting(node_id, services)
    topics = Topics(settings, services, store, hosting, placing)
    topics.reload()
    try:
        await hosting.load()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(hosting.run)
            nursery.start_soon(_remove_leftovers, hosting, services.directory)
            nursery.start_soon(_sweep, settings, services, hosting)
            yield Metadata(
                topics=topics,
                brokers=Brokers(node_id, lambda: store.state, Alone(node_id)),
                controller=Controller(node_id, store, NoCalls()),
            )
            nursery.cancel_scope.cancel()
    finally:
        with trio.CancelScope(shield=True):
            await close_replicas(services, hosting)


def _open_store(settings: BrokerSettings, services: ReplicaServices) -> ClusterStore:
    """On a thread: whose directory it is, what topics there are; deletions are completed."""
    directory = services.directory
    store = ClusterStore(services.state, NodeId(settings.node_id))
    known = store.state.cluster_id
    if settings.cluster_id is not None and known not in (None, settings.cluster_id):
        raise StorageError(
            f"the data directory {directory.path} is of cluster {known}, and cluster.id is "
            f"{settings.cluster_id}: give it another directory, or leave cluster.id out"
        )
    _complete_deletions(store, directory)
    store.fold()
    _report_strangers(store, directory)
    return store


def _foundation(settings: BrokerSettings, state: ClusterState) -> FoundCluster:
    return FoundCluster(at_version=state.version, cluster_id=_cluster_id(settings))


def _registration(settings: BrokerSettings, db: StateDb, state: ClusterState) -> RegisterBroker:
    """This start of this broker."""
    incarnation = int(db.meta("incarnation") or 0) + 1
    db.set_meta("incarnation", str(incarnation))
    return RegisterBroker(
        at_version=state.version,
        node_id=NodeId(settings.node_id),
        directory_id=db.directory_id,
        incarnation=incarnation,
        listeners={
            each.name: BrokerAddress(address.host, address.port)
            for each in settings.client_listeners()
            for address in [each.advertised or each.address]
        },
        # Nobody else is there yet to connect to it.
        peer=BrokerAddress("", 0),
        rack=settings.broker_rack,
    )


def _complete_deletions(store: ClusterStore, directory: DataDirectory) -> None:
    """Rename what a crash has left of deleted topics, unless the name is another topic's now."""
    there = {partition.topic for partition in directory.partitions()}
    for deleted in store.deleted.values():
        if deleted.name in there and store.state.topic(deleted.name) is None:
            move_away(directory, deleted)
    # For renames of the time before, whose own sync the crash may have forestalled.
    directory.sync()


def _report_strangers(store: ClusterStore, directory: DataDirectory) -> None:
    """Directories that look like a partition's and are not. Nothing is removed on suspicion."""
    for partition in directory.partitions():
        topic = store.state.topic(partition.topic)
        if topic is None or partition.partition >= topic.partitions:
            logger.warning(
                "%s belongs to no topic; it is left as it is, and keeps a topic of that name "
                "from being created until it is moved away",
                directory.partition_path(partition),
            )


def _cluster_id(settings: BrokerSettings) -> str:
    """As Kafka writes its own: 16 random bytes in URL-safe base 64."""
    return settings.cluster_id or urlsafe_b64encode(secrets.token_bytes(16)).decode().rstrip("=")


async def _remove_leftovers(hosting: Hosting, directory: DataDirectory) -> None:
    """Remove the directories of deleted topics: once at the start, and after each deletion."""
    while True:
        hosting.has_leftovers = trio.Event()
        try:
            for path in await trio.to_thread.run_sync(directory.deleted):
                await trio.to_thread.run_sync(directory.remove, path)
        except OSError as error:
            logger.warning("a deleted topic's files cannot be removed yet: %s", error)
        await hosting.has_leftovers.wait()


async def _sweep(settings: BrokerSettings, services: ReplicaServices, hosting: Hosting) -> None:
    """One pass over all partitions at a time: retention, and producers that have gone quiet."""
    interval = settings.log_retention_check_interval_ms / 1000
    await trio.sleep(min(interval, FIRST_SWEEP_SECONDS_MAX))
    while True:
        for replica in hosting:
            now_ms = services.clock.now_ms()
            replica.expire_producers(now_ms, idle_ms=settings.producer_id_expiration_ms)
            try:
                await replica.apply_retention(now_ms)
            except (OSError, StorageError, CorruptBatch) as error:
                services.storage_failed(f"{replica.name}: retention: {error}")
            await trio.lowlevel.checkpoint()
        await trio.sleep(interval)
