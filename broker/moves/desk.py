"""Everything about moves of leaders that requests need, and the tasks that carry them out."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial

import trio

from tidemark.broker.config import BrokerSettings
from tidemark.broker.metadata.controller import Controller
from tidemark.broker.metadata.open_metadata import Metadata
from tidemark.broker.moves.door import Door
from tidemark.broker.moves.executor import MoveExecutor
from tidemark.broker.moves.outcomes import MoveOutcomes
from tidemark.broker.moves.sweeping import keep_swept
from tidemark.broker.replicas.replica_parts import ReplicaServices
from tidemark.partitions.replication.moves import MoveTiming
from tidemark.partitions.state_machines.cluster_commands import EndMoves
from tidemark.partitions.state_machines.cluster_values import MoveOutcome
from tidemark.protocol.types import NodeId
from tidemark.protocol.values import dataclass


@dataclass(frozen=True, slots=True)
class MoveDesk:
    """Where handlers ask for moves, and for what became of them."""

    door: Door
    """Takes wishes on the leader of the metadata, and on no other broker."""
    outcomes: MoveOutcomes


@asynccontextmanager
async def open_moves(
    settings: BrokerSettings,
    services: ReplicaServices,
    metadata: Metadata,
    *,
    is_full: Callable[[NodeId], bool],
) -> AsyncIterator[MoveDesk]:
    """Leaders are moved, and asked to be, as long as this block lasts."""
    cluster, clock, driver = metadata.cluster, services.clock, services.driver
    pause_seconds = settings.leader_move_pause_max_ms / 1000
    driver.node.moves.timing = MoveTiming(pause_seconds=pause_seconds)
    outcomes = MoveOutcomes(cluster)
    cluster.listen(outcomes.applied)
    executor = MoveExecutor(
        driver.node,
        cluster,
        partial(_report, metadata.controller),
        turn=services.turn,
        touch=driver.touch,
        clock=clock,
        metrics=services.metrics.moves,
    )
    driver.on_ended_moves = executor.ended
    async with trio.open_nursery() as tasks:
        tasks.start_soon(executor.run)
        tasks.start_soon(executor.run_reports)
        tasks.start_soon(keep_swept, cluster, clock)
        door = Door(cluster, metadata.brokers, clock, is_full=is_full)
        yield MoveDesk(door, outcomes)
        tasks.cancel_scope.cancel()


async def _report(controller: Controller, outcomes: Sequence[MoveOutcome]) -> None:
    await controller.tell(EndMoves(at_version=0, outcomes=tuple(outcomes)))
