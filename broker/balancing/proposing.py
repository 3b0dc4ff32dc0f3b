"""Plans become wishes in the cluster's metadata; whoever leads a partition carries them out.

Between the plan and its turn the state may have moved on. What does not fit any more is left out:
the next plan is made soon.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Final, Protocol

from tidemark.partitions.balancing.leaders import LeaderMove
from tidemark.partitions.balancing.replicas import ReplicaMove
from tidemark.partitions.state_machines import cluster_values
from tidemark.partitions.state_machines.cluster import Applied, ClusterState
from tidemark.partitions.state_machines.cluster_commands import (
    Command,
    MoveLeaders,
    ReassignPartitions,
    UnregisterBroker,
)
from tidemark.partitions.state_machines.cluster_values import (
    Assignment,
    BrokerState,
    PartitionId,
    Reassignment,
)
from tidemark.protocol.types import NodeId, TopicPartition

MOVE_MS: Final = 30_000
"""A move that is not over by then is given up."""


class Cluster(Protocol):
    """The cluster's metadata, and the way to change them."""

    @property
    def state(self) -> ClusterState: ...

    @property
    def leads(self) -> bool: ...

    async def propose(self, decide: Callable[[ClusterState], Command]) -> Applied: ...


class _NothingLeft(Exception):
    """All that was planned has been overtaken."""


async def move_leaders(
    cluster: Cluster, moves: Sequence[LeaderMove], *, now_ms: int
) -> list[tuple[LeaderMove, PartitionId]]:
    """Wish for these; `now_ms` is the time of day. Returns those that were wished for.

    Raises `RequestError` where this broker does not lead the metadata any more.
    """
    taken: list[tuple[LeaderMove, PartitionId]] = []

    def decide(state: ClusterState) -> MoveLeaders:
        taken[:] = [
            (move, at)
            for move in moves
            if (at := partition_id(move.partition, state)) is not None
            and _may_begin(move, at, state)
        ]
        if not taken:
            raise _NothingLeft
        return MoveLeaders(
            at_version=state.version,
            moves=tuple(_wish(move, at, now_ms + MOVE_MS) for move, at in taken),
        )

    return taken if await _proposed(cluster, decide) else []


def _wish(move: LeaderMove, at: PartitionId, deadline_ms: int) -> cluster_values.LeaderMove:
    return cluster_values.LeaderMove(
        topic_id=at.topic_id,
        partition=at.partition,
        target=move.target,
        deadline_ms=deadline_ms,
        reason=move.reason,
    )


def _may_begin(move: LeaderMove, at: PartitionId, state: ClusterState) -> bool:
    topic = state.topic_by_id(at.topic_id)
    return (
        topic is not None
        and at not in state.wishes.moves
        and at.partition not in topic.wanted
        and move.target in topic.assignments[at.partition]
        and state.wishes.broker_state(move.target) is BrokerState.ACTIVE
    )


async def move_replicas(cluster: Cluster, moves: Sequence[ReplicaMove]) -> list[ReplicaMove]:
    """Wish for these. As `move_leaders`."""
    taken: list[ReplicaMove] = []

    def decide(state: ClusterState) -> ReassignPartitions:
        taken[:] = [move for move in moves if _may_change(move, state)]
        if not taken:
            raise _NothingLeft
        return ReassignPartitions(
            at_version=state.version,
            reassignments=tuple(
                Reassignment(
                    topic_id=at.topic_id, partition=at.partition, replicas=tuple(move.after)
                )
                for move in taken
                if (at := partition_id(move.partition, state)) is not None
            ),
        )

    return taken if await _proposed(cluster, decide) else []


def _may_change(move: ReplicaMove, state: ClusterState) -> bool:
    topic, number = state.topic(move.partition.topic), move.partition.partition
    return (
        topic is not None
        and number < topic.partitions
        and number not in topic.wanted
        and topic.assignments[number] == move.before
        and state.wishes.broker_state(move.source) is BrokerState.DECOMMISSIONING
        and state.wishes.broker_state(move.target) is BrokerState.ACTIVE
    )


async def call_off_moves(cluster: Cluster, source: NodeId, dead: Collection[NodeId]) -> int:
    """Replicas that are to go from a broker that leaves to one of the `dead` stay for now: how
    many. As `move_leaders`."""
    called_off: list[Reassignment] = []

    def decide(state: ClusterState) -> ReassignPartitions:
        called_off[:] = [
            Reassignment(topic_id=topic.id, partition=partition, replicas=None)
            for topic in state.topics.values()
            for partition, wanted in topic.wanted.items()
            if _leads_nowhere(topic.assignments[partition], wanted, source, dead)
        ]
        if not called_off:
            raise _NothingLeft
        return ReassignPartitions(at_version=state.version, reassignments=tuple(called_off))

    return len(called_off) if await _proposed(cluster, decide) else 0


def _leads_nowhere(
    assigned: Assignment, wanted: Assignment, source: NodeId, dead: Collection[NodeId]
) -> bool:
    coming = {*wanted} - {*assigned}
    return source in assigned and source not in wanted and not coming.isdisjoint(dead)


async def forget_broker(cluster: Cluster, node: NodeId) -> bool:
    """A broker that was to leave holds nothing and is gone: its number is free."""

    def decide(state: ClusterState) -> UnregisterBroker:
        if state.wishes.broker_state(node) is not BrokerState.DECOMMISSIONING:
            raise _NothingLeft
        return UnregisterBroker(at_version=state.version, node_id=node)

    return await _proposed(cluster, decide)


async def _proposed(cluster: Cluster, decide: Callable[[ClusterState], Command]) -> bool:
    try:
        await cluster.propose(decide)
    except _NothingLeft:
        return False
    return True


def partition_id(partition: TopicPartition, state: ClusterState) -> PartitionId | None:
    """None if there is no such partition any more."""
    topic = state.topic(partition.topic)
    if topic is None or partition.partition >= topic.partitions:
        return None
    return PartitionId(topic.id, partition.partition)
