"""A cluster's metadata for tests, made in few words."""

from uuid import UUID

import pytest

from tidemark.partitions.state_machines.cluster import ClusterState
from tidemark.partitions.state_machines.cluster_commands import (
    Command,
    CreateTopic,
    RegisterBroker,
)
from tidemark.partitions.state_machines.cluster_values import (
    Assignment,
    BrokerAddress,
)
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.types import NodeId


def on(*nodes: int) -> Assignment:
    return tuple(map(NodeId, nodes))


def register(
    state: ClusterState, node: int, *, directory: int | None = None, incarnation: int = 1
) -> RegisterBroker:
    return RegisterBroker(
        at_version=state.version,
        node_id=NodeId(node),
        directory_id=UUID(int=directory or node),
        incarnation=incarnation,
        listeners={"PLAINTEXT": BrokerAddress(f"broker-{node}", 9092)},
        peer=BrokerAddress(f"broker-{node}", 9093),
        rack="r1",
    )


def with_brokers(*nodes: int) -> ClusterState:
    state = ClusterState()
    for node in nodes:
        state.apply(register(state, node))
    return state


def create(
    state: ClusterState,
    name: str,
    *,
    number: int = 1,
    partitions: int = 1,
    assignments: tuple[Assignment, ...] | None = None,
    configs: dict[str, str] | None = None,
) -> CreateTopic:
    return CreateTopic(
        at_version=state.version,
        name=name,
        id=UUID(int=number),
        assignments=(on(1),) * partitions if assignments is None else assignments,
        configs=configs or {},
        created_ms=5,
    )


def refusal(state: ClusterState, command: Command) -> ErrorCode:
    before = state.encode()
    with pytest.raises(RequestError) as caught:
        state.apply(command)
    assert state.encode() == before, "a refused command changes nothing"
    return caught.value.code
