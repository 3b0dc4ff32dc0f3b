"""Which wishes are taken, and what the others are answered."""

from collections.abc import Collection
from dataclasses import dataclass, field

import pytest
import trio
from trio.testing import MockClock

from tests.broker.moves.cluster import ID, ONE, THREE, TOPIC_ID, TWO, Clock, open_cluster, propose
from tidemark.broker import steps
from tidemark.broker.metadata.brokers import Brokers, Quorum
from tidemark.broker.metadata.cluster_log import ClusterLog
from tidemark.broker.moves.door import Answer, Asked, Door, Taken
from tidemark.partitions.state_machines.cluster_commands import ReassignPartitions, SetBrokerState
from tidemark.partitions.state_machines.cluster_values import BrokerState, Reassignment
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.types import NO_EPOCH, Epoch, NodeId, TopicPartition

HOME, AWAY = TopicPartition("waves", 0), TopicPartition("waves", 1)


@dataclass
class Liveness:
    """Broker 1 leads everything, and all live."""

    dead: set[NodeId] = field(default_factory=set)
    leader: NodeId | None = field(default=ONE)

    def is_alive(self, node: NodeId) -> bool:
        return node not in self.dead

    def silent_seconds(self, _node: NodeId) -> float:
        return 0.0

    def leader_of(self, _key: PartitionKey) -> tuple[NodeId | None, Epoch]:
        return self.leader, NO_EPOCH

    def lagging(self, key: PartitionKey, nodes: Collection[NodeId]) -> Collection[NodeId]:
        del key, nodes
        return ()

    def quorum(self, _key: PartitionKey) -> Quorum | None:
        return None


async def open_door(
    liveness: Liveness | None = None, *, full: Collection[NodeId] = ()
) -> tuple[Door, ClusterLog]:
    cluster = await open_cluster()
    brokers = Brokers(THREE, lambda: cluster.state, liveness or Liveness())
    return Door(cluster, brokers, Clock(), is_full=full.__contains__), cluster


async def take(
    door: Door, *asked: tuple[TopicPartition, NodeId], dry_run: bool = False
) -> list[Answer]:
    return await door.take(
        [Asked(*each) for each in asked], "why not", timeout_ms=5000, validate_only=dry_run
    )


async def refused(door: Door, partition: TopicPartition, target: int) -> tuple[ErrorCode, str]:
    """What a wish is answered, with or without being meant."""
    (dry,) = await take(door, (partition, NodeId(target)), dry_run=True)
    (answer,) = await take(door, (partition, NodeId(target)))
    assert not isinstance(answer, Taken)
    assert not isinstance(dry, Taken)
    assert (answer.code, answer.message) == (dry.code, dry.message)
    return answer.code, answer.message or ""


async def test_a_wish_is_written_down_with_its_deadline_and_its_reason() -> None:
    door, cluster = await open_door()
    now_ms = Clock().now_ms()
    (answer,) = await take(door, (HOME, TWO))
    assert isinstance(answer, Taken)
    (wished,) = cluster.state.wishes.moves.values()
    assert answer.move == wished
    assert (wished.id, wished.target, wished.reason) == (ID, TWO, "why not")
    assert 5000 <= wished.deadline_ms - now_ms < 6000


async def test_a_dry_run_writes_nothing() -> None:
    door, cluster = await open_door()
    version = cluster.state.version
    (answer,) = await take(door, (HOME, TWO), dry_run=True)
    assert isinstance(answer, Taken)
    assert cluster.state.version == version


async def test_the_same_wish_again_is_the_one_there_is_and_another_one_is_refused() -> None:
    door, cluster = await open_door()
    (first,) = await take(door, (HOME, TWO))
    version = cluster.state.version
    (again,) = await take(door, (HOME, TWO))
    assert again == first
    assert cluster.state.version == version
    assert await refused(door, HOME, THREE) == (
        ErrorCode.REASSIGNMENT_IN_PROGRESS,
        "its leader is on its way to broker 2",
    )


async def test_a_broker_with_a_full_disk_is_not_given_a_leader() -> None:
    """Its records would be refused from then on."""
    door, _ = await open_door(full={TWO})
    assert await refused(door, HOME, TWO) == (
        ErrorCode.INELIGIBLE_REPLICA,
        "the disk of broker 2 is full: it takes no records",
    )
    (answer,) = await take(door, (HOME, THREE))
    assert isinstance(answer, Taken)


@pytest.mark.parametrize("at_once", [1, 3, 1000])
async def test_each_of_several_has_an_answer_of_its_own(
    at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "_ELEMENTS_AT_ONCE", at_once)
    door, cluster = await open_door()
    away, again, unknown, needless = await take(
        door, (AWAY, TWO), (AWAY, THREE), (TopicPartition("tides", 0), TWO), (HOME, ONE)
    )
    assert isinstance(away, Taken)
    assert [
        answer.code for answer in (again, unknown, needless) if not isinstance(answer, Taken)
    ] == [
        ErrorCode.INVALID_REQUEST,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.ELECTION_NOT_NEEDED,
    ]
    assert [wished.id for wished in cluster.state.wishes.moves.values()] == [(TOPIC_ID, 1)]


async def test_a_dead_target_is_refused() -> None:
    door, _ = await open_door(Liveness(dead={TWO}))
    assert await refused(door, HOME, 2) == (
        ErrorCode.BROKER_NOT_AVAILABLE,
        "broker 2 is not alive",
    )


async def test_news_of_a_leader_that_are_on_their_way_are_waited_for(
    autojump_clock: MockClock,
) -> None:
    liveness = Liveness(leader=None)
    door, _ = await open_door(liveness)
    async with trio.open_nursery() as nursery:

        async def hear() -> None:
            await trio.sleep(0.5)
            liveness.leader = ONE

        nursery.start_soon(hear)
        (answer,) = await take(door, (HOME, TWO))
        assert isinstance(answer, Taken)


async def test_a_partition_without_a_leader_has_nobody_to_carry_it_out(
    autojump_clock: MockClock,
) -> None:
    door, _ = await open_door(Liveness(leader=None))
    assert await refused(door, HOME, 2) == (
        ErrorCode.LEADER_NOT_AVAILABLE,
        "it has no leader now",
    )


@pytest.mark.parametrize(
    ("state", "sentence"),
    [
        (BrokerState.DRAINING, "broker 2 is draining"),
        (BrokerState.DECOMMISSIONING, "broker 2 is being decommissioned"),
    ],
)
async def test_a_broker_that_is_to_lead_nothing_is_refused(
    state: BrokerState, sentence: str
) -> None:
    door, cluster = await open_door()
    await propose(
        cluster, lambda version: SetBrokerState(at_version=version, node_id=TWO, state=state)
    )
    assert await refused(door, HOME, 2) == (ErrorCode.INELIGIBLE_REPLICA, sentence)


async def test_a_partition_whose_replicas_move_keeps_its_leader_meanwhile() -> None:
    door, cluster = await open_door()
    wanted = Reassignment(topic_id=TOPIC_ID, partition=0, replicas=(ONE, TWO))
    await propose(
        cluster, lambda version: ReassignPartitions(at_version=version, reassignments=(wanted,))
    )
    assert await refused(door, HOME, 2) == (
        ErrorCode.REASSIGNMENT_IN_PROGRESS,
        "its replicas are being changed",
    )


async def test_who_is_no_replica_or_no_broker_is_refused() -> None:
    door, _ = await open_door()
    assert await refused(door, HOME, 9) == (
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "there is no broker 9, only 1, 2, 3",
    )
