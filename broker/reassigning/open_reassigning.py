"""Everything about moves of replicas that requests need, and the tasks that carry them out."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial

import trio

from tidemark.broker.config import BrokerSettings
from tidemark.broker.metadata.controller import Controller
from tidemark.broker.metadata.open_metadata import Metadata
from tidemark.broker.reassigning.door import Asked, Door, IsFull
from tidemark.broker.reassigning.executor import ReassignmentExecutor
from tidemark.broker.reassigning.raising import keep_raised, to_raise
from tidemark.broker.reassigning.throttles import throttles_of
from tidemark.broker.replicas.replica_parts import ReplicaServices
from tidemark.partitions.replication.reassigning import Reassignments
from tidemark.partitions.state_machines.cluster_commands import FinishReassignments
from tidemark.partitions.state_machines.cluster_values import Reassignment
from tidemark.partitions.state_machines.topic_names import CONSUMER_OFFSETS, TRANSACTION_STATE
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.types import NodeId
from tidemark.protocol.values import dataclass


@dataclass(frozen=True, slots=True)
class Reassigning:
    """Where handlers ask for other replicas, and see how far they are."""

    door: Door
    """Takes wishes on the leader of the metadata, and on no other broker."""
    reassignments: Reassignments


@asynccontextmanager
async def open_reassigning(
    settings: BrokerSettings, services: ReplicaServices, metadata: Metadata, *, is_full: IsFull
) -> AsyncIterator[Reassigning]:
    """Replicas are moved, and asked to be, as long as this block lasts."""
    driver = services.driver

    def leader_of(key: PartitionKey) -> NodeId | None:
        return metadata.brokers.leader_of(key)[0]

    reassignments = Reassignments(
        driver.node, bytes_per_second=settings.reassignment_bytes_per_second
    )
    executor = ReassignmentExecutor(
        reassignments,
        metadata.cluster,
        partial(_report, metadata.controller),
        lambda state: throttles_of(state, driver.node.node_id, leader_of),
        turn=services.turn,
        touch=driver.touch,
        metrics=services.metrics.reassignments,
    )
    cluster, is_alive = metadata.cluster, metadata.brokers.is_alive
    door = Door(cluster, is_alive, is_full)

    wanted = {
        CONSUMER_OFFSETS: settings.offsets_topic_replication_factor,
        TRANSACTION_STATE: settings.transaction_state_log_replication_factor,
    }

    def find() -> list[Asked]:
        return [
            asked
            for name, replicas in wanted.items()
            for asked in to_raise(
                cluster.state, name, is_alive, replicas=replicas, draw=random.random
            )
        ]

    def alive() -> frozenset[NodeId]:
        return frozenset(filter(is_alive, cluster.state.brokers))

    async with trio.open_nursery() as tasks:
        tasks.start_soon(executor.run)
        tasks.start_soon(executor.run_reports)
        tasks.start_soon(keep_raised, door, lambda: cluster.leads, find, alive)
        yield Reassigning(door, reassignments)
        tasks.cancel_scope.cancel()


async def _report(controller: Controller, done: Sequence[Reassignment]) -> None:
    await controller.tell(FinishReassignments(at_version=0, reassignments=tuple(done)))
