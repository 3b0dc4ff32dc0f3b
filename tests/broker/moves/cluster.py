"""The metadata of three brokers and a topic, on the one broker that leads them."""

from collections.abc import Callable
from uuid import UUID

import trio

from tests.broker.fake_cluster import FakeGroup, cluster_log
from tidemark.broker.metadata.cluster_log import ClusterLog
from tidemark.partitions.state_machines.cluster import ClusterState
from tidemark.partitions.state_machines.cluster_commands import (
    Command,
    CreateTopic,
    EndMoves,
    MoveLeaders,
    RegisterBroker,
)
from tidemark.partitions.state_machines.cluster_values import (
    BrokerAddress,
    LeaderMove,
    MoveOutcome,
    PartitionId,
)
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.types import NodeId

TOPIC_ID = UUID(int=9)
KEY = PartitionKey(TOPIC_ID, 0)
ID = PartitionId(TOPIC_ID, 0)
ONE, TWO, THREE = NodeId(1), NodeId(2), NodeId(3)


class Clock:
    """Time of day that goes with trio's clock."""

    def now_ms(self) -> int:
        return 1_000_000 + int(trio.current_time() * 1000)


def move(target: NodeId = TWO, *, seconds: float = 30, partition: int = 0) -> LeaderMove:
    return LeaderMove(
        topic_id=TOPIC_ID,
        partition=partition,
        target=target,
        deadline_ms=Clock().now_ms() + int(seconds * 1000),
        reason="to see",
    )


def outcome(of: LeaderMove, failure: str | None = None, *, attempts: int = 1) -> MoveOutcome:
    return MoveOutcome(
        topic_id=of.topic_id,
        partition=of.partition,
        target=of.target,
        deadline_ms=of.deadline_ms,
        failure=failure,
        attempts=attempts,
    )


async def open_cluster() -> ClusterLog:
    """Brokers 1 to 3, and "waves" with two partitions that all of them hold."""
    cluster = cluster_log(FakeGroup(commits_at_once=True))
    for node in (ONE, TWO, THREE):
        await propose(
            cluster,
            lambda version, node=node: RegisterBroker(  # type: ignore[misc]  # a default argument
                at_version=version,
                node_id=node,
                directory_id=UUID(int=node),
                incarnation=1,
                listeners={"PLAINTEXT": BrokerAddress("h", node)},
                peer=BrokerAddress("h", 100 + node),
                rack=None,
            ),
        )
    await propose(
        cluster,
        lambda version: CreateTopic(
            at_version=version,
            name="waves",
            id=TOPIC_ID,
            assignments=((ONE, TWO, THREE), (TWO, THREE, ONE)),
            configs={},
            created_ms=1,
        ),
    )
    return cluster


async def propose(cluster: ClusterLog, command: Callable[[int], Command]) -> None:
    def decide(state: ClusterState) -> Command:
        return command(state.version)

    await cluster.propose(decide)


async def wish(cluster: ClusterLog, *moves: LeaderMove) -> None:
    await propose(cluster, lambda version: MoveLeaders(at_version=version, moves=moves))


async def strike(cluster: ClusterLog, *outcomes: MoveOutcome) -> None:
    await propose(cluster, lambda version: EndMoves(at_version=version, outcomes=outcomes))
