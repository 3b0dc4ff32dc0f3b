"""What is done again and again about the hosted replicas and their files."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from typing import Final
from uuid import UUID

import trio

from tidemark.broker.config import BrokerSettings
from tidemark.broker.metadata.hosting import Hosting
from tidemark.broker.replicas.replica_parts import ReplicaServices
from tidemark.broker.steps import portions
from tidemark.broker.threads import in_thread
from tidemark.partitions.state_machines.cluster import ClusterState
from tidemark.partitions.storage.directory import DataDirectory
from tidemark.protocol.errors import CorruptBatch, StorageError

RETRY_SECONDS: Final = 5.0
"""Until what could not be removed is tried again."""
FIRST_SWEEP_SECONDS_MAX: Final = 30.0
FULL_DISK_SWEEP_SECONDS: Final = 5.0
"""Between two passes while the disk is full: a shorter retention is to be of use soon."""

logger = logging.getLogger(__name__)


async def remove_leftovers(hosting: Hosting, directory: DataDirectory) -> None:
    """Remove the directories of deleted topics: once at the start, and after each deletion; those
    that cannot be removed, for want of a descriptor say, a while later."""
    while True:
        hosting.has_leftovers = trio.Event()
        is_done = await _remove_all(directory)
        with trio.move_on_after(math.inf if is_done else RETRY_SECONDS):
            await hosting.has_leftovers.wait()


async def _remove_all(directory: DataDirectory) -> bool:
    """Whether nothing is left of them."""
    try:
        paths = await in_thread(directory.deleted)
    except OSError as error:
        logger.warning("deleted topics' files cannot be removed yet: %s", error)
        return False
    failure: OSError | None = None
    for path in paths:
        try:
            await in_thread(directory.remove, path)
        except OSError as error:
            failure = error
    if failure is not None:
        logger.warning("a deleted topic's files cannot be removed yet: %s", failure)
    return failure is None


async def sweep(
    settings: BrokerSettings,
    services: ReplicaServices,
    hosting: Hosting,
    state: Callable[[], ClusterState],
) -> None:
    """One pass over all partitions at a time: retention, and producers that have gone quiet."""
    interval = settings.log_retention_check_interval_ms / 1000
    await _pause(services, min(interval, FIRST_SWEEP_SECONDS_MAX))
    while True:
        for replica in hosting:
            now_ms = services.clock.now_ms()
            replica.expire_producers(now_ms, idle_ms=settings.producer_id_expiration_ms)
            try:
                replica.apply_retention(now_ms)
            except (OSError, StorageError, CorruptBatch) as error:
                services.storage_failed(f"{replica.name}: retention: {error}")
            await trio.lowlevel.checkpoint()
        await forget_gone(services, state)
        await _pause(services, interval)


async def forget_gone(services: ReplicaServices, state: Callable[[], ClusterState]) -> None:
    """What was heard of topics after they were deleted; the loop goes on between two portions."""

    def exists(topic_id: UUID) -> bool:
        return state().topic_by_id(topic_id) is not None

    node = services.driver.node
    for keys in portions(node.known.heard_of()):
        node.forget_gone(keys, exists, state().version)
        await trio.lowlevel.checkpoint()


async def _pause(services: ReplicaServices, seconds_max: float) -> None:
    """Until the next pass; that comes soon while the disk is full."""
    with trio.move_on_after(seconds_max):
        await services.room.wait_out()
        await trio.sleep(FULL_DISK_SWEEP_SECONDS)
