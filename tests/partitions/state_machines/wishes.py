"""Wishes of operators, and a cluster that has them."""

from uuid import UUID

from tests.partitions.state_machines.clusters import create, on, with_brokers
from tidemark.partitions.state_machines.cluster import ClusterState
from tidemark.partitions.state_machines.cluster_commands import (
    MoveLeaders,
    ReassignPartitions,
    SetBrokerState,
)
from tidemark.partitions.state_machines.cluster_values import (
    Assignment,
    BrokerState,
    LeaderMove,
    Reassignment,
)
from tidemark.protocol.types import NodeId

ORDERS = UUID(int=1)


def cluster() -> ClusterState:
    state = with_brokers(1, 2, 3, 4)
    state.apply(create(state, "orders", assignments=(on(1, 2, 3), on(2, 3, 4))))
    return state


def move(target: int, *, partition: int = 0, deadline_ms: int = 9) -> LeaderMove:
    return LeaderMove(
        topic_id=ORDERS,
        partition=partition,
        target=NodeId(target),
        deadline_ms=deadline_ms,
        reason="asked for",
    )


def wish(state: ClusterState, *moves: LeaderMove) -> MoveLeaders:
    return MoveLeaders(at_version=state.version, moves=moves)


def reassign(
    state: ClusterState, partition: int, replicas: Assignment | None
) -> ReassignPartitions:
    change = Reassignment(topic_id=ORDERS, partition=partition, replicas=replicas)
    return ReassignPartitions(at_version=state.version, reassignments=(change,))


def set_state(state: ClusterState, node: int, wanted: BrokerState) -> SetBrokerState:
    return SetBrokerState(at_version=state.version, node_id=NodeId(node), state=wanted)
