"""The cluster as one broker shows it: who lives, who leads, and what is not known."""

import math
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from uuid import UUID

import pytest

from tests.broker.handlers.asking import ask
from tests.broker.liveness import ME, THREE, TWO, FakeLiveness, registered, three
from tests.broker.nodes import context, open_node
from tidemark.broker.config import Address
from tidemark.broker.handlers import describe_cluster, metadata
from tidemark.broker.metadata.brokers import Brokers
from tidemark.broker.metadata.cluster_log import CLUSTER_KEY
from tidemark.broker.metadata.partition_view import partition_view
from tidemark.broker.metadata.topic import NewTopic, Topic
from tidemark.broker.network.requests import AskAnother
from tidemark.partitions.state_machines.cluster import ClusterState
from tidemark.partitions.state_machines.cluster_values import TopicMetadata
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.messages.describe_cluster import DescribeClusterRequest
from tidemark.protocol.messages.metadata import MetadataRequest
from tidemark.protocol.types import Epoch, NodeId

TOPIC = UUID(int=77)
KEY = PartitionKey(TOPIC, 0)


@dataclass
class Local:
    """A replica here."""

    partition: int = 0
    is_available: bool = True
    epoch: Epoch = field(default=Epoch(5))
    key: PartitionKey = KEY


def brokers(liveness: FakeLiveness) -> Brokers:
    state = three()
    return Brokers(ME, lambda: state, liveness)


def topic(*local: Local) -> Topic:
    described = TopicMetadata(
        name="waves", id=TOPIC, assignments=((ME, TWO, THREE),), configs={}, created_ms=0
    )
    return Topic.of(described, {}, local)  # type: ignore[arg-type]  # all that is looked at


def test_a_client_is_shown_the_brokers_at_the_addresses_of_its_own_listener() -> None:
    leaders: dict[PartitionKey, tuple[NodeId | None, Epoch]] = {CLUSTER_KEY: (THREE, Epoch(3))}
    cluster = brokers(FakeLiveness(alive={3}, leaders=leaders))
    session = replace(
        context(12).session, listener=Address("came.here", 9), listener_name="OUTSIDE"
    )
    assert [tuple(each) for each in cluster.shown_to(session)] == [
        (1, Address("came.here", 9), "r1", True),
        (3, Address("out3", 2), "r3", True),
    ]
    assert [each.is_alive for each in cluster.shown_to(session, dead_too=True)] == [
        True,
        False,
        True,
    ]


def test_a_broker_that_is_cut_off_shows_its_clients_the_others() -> None:
    cluster = brokers(FakeLiveness(alive=set()))
    shown = cluster.shown_to(context(12).session)
    assert [(each.node_id, each.is_alive) for each in shown] == [(1, True), (2, False), (3, False)]


def test_a_broker_without_that_listener_is_shown_at_its_first() -> None:
    cluster = brokers(FakeLiveness())
    assert cluster.address(TWO, "OTHER") == Address("in2", 1)
    assert cluster.address(NodeId(9), "INSIDE") is None


def test_a_dead_leader_is_none() -> None:
    leaders: dict[PartitionKey, tuple[NodeId | None, Epoch]] = {
        CLUSTER_KEY: (TWO, Epoch(3)),
        KEY: (THREE, Epoch(4)),
    }
    cluster = brokers(FakeLiveness(alive={3}, leaders=leaders))
    assert cluster.controller is None
    assert cluster.leader_of(KEY) == (THREE, 4)


@pytest.mark.parametrize(
    ("leader", "local", "behind", "seen"),
    [
        (TWO, Local(), (), (TWO, 7, (1, 2, 3), ())),
        (TWO, None, (), (TWO, 7, (2, 3), (1,))),
        (None, Local(), (), (None, 7, (1, 2, 3), ())),
        (ME, Local(), (THREE,), (ME, 7, (1, 2), ())),
        (ME, Local(is_available=False), (), (None, 7, (2, 3), (1,))),
        (TWO, Local(epoch=Epoch(9)), (), (TWO, 9, (1, 2, 3), ())),
    ],
)
def test_a_partition_is_shown_as_far_as_it_is_known(
    leader: NodeId | None,
    local: Local | None,
    behind: tuple[NodeId, ...],
    seen: tuple[NodeId | None, int, tuple[int, ...], tuple[int, ...]],
) -> None:
    liveness = FakeLiveness(leaders={KEY: (leader, Epoch(7))}, behind=behind)
    view = partition_view(brokers(liveness), topic(*([] if local is None else [local])), 0)
    assert view.replicas == (1, 2, 3)
    assert (view.leader, view.epoch, view.in_sync, view.offline) == seen


def test_replicas_that_move_are_shown_and_in_sync_once_they_hold_all() -> None:
    moving = replace(
        topic(Local()).metadata, assignments=((NodeId(1), TWO),), wanted={0: (THREE, NodeId(1))}
    )
    shown = replace(topic(Local()), metadata=moving)
    leaders: dict[PartitionKey, tuple[NodeId | None, Epoch]] = {KEY: (ME, Epoch(7))}
    view = partition_view(brokers(FakeLiveness(leaders=leaders, behind=(THREE,))), shown, 0)
    assert (view.replicas, view.in_sync) == ((3, 1, 2), (1, 2))
    view = partition_view(brokers(FakeLiveness(leaders=leaders)), shown, 0)
    assert view.in_sync == (3, 1, 2)
    view = partition_view(brokers(FakeLiveness(leaders={KEY: (TWO, Epoch(7))})), shown, 0)
    assert view.in_sync == (1, 2), "only the leader knows that it holds all"


async def test_clients_are_told_of_all_brokers_that_live(tmp_path: Path) -> None:
    async with open_node(tmp_path) as alone:
        leaders: dict[PartitionKey, tuple[NodeId | None, Epoch]] = {CLUSTER_KEY: (TWO, Epoch(1))}
        node = replace(alone, brokers=brokers(FakeLiveness(alive={2}, leaders=leaders)))
        for version in (0, 9, 12):
            known = await ask(metadata.handle, node, MetadataRequest(topics=()), version)
            assert [(each.node_id, each.host) for each in known.brokers] == [
                (1, "127.0.0.1"),
                (2, "in2"),
            ]
            assert known.controller_id == (2 if version else -1)
        asked = DescribeClusterRequest(
            include_cluster_authorized_operations=False, include_fenced_brokers=True
        )
        described = await ask(describe_cluster.handle, node, asked, 2)
        assert [each.is_fenced for each in described.brokers] == [False, False, True]
        assert described.controller_id == 2


@pytest.mark.parametrize(("silent", "told"), [(8.9, [1, 2, 3]), (9.0, [1, 2])])
async def test_clients_are_told_for_a_while_of_a_broker_that_is_not_heard_any_more(
    tmp_path: Path, silent: float, told: list[int]
) -> None:
    leaders: dict[PartitionKey, tuple[NodeId | None, Epoch]] = {CLUSTER_KEY: (TWO, Epoch(1))}
    async with open_node(tmp_path) as alone:
        known = brokers(FakeLiveness(alive={2}, leaders=leaders, silent=silent))
        node = replace(alone, brokers=known)
        answer = await ask(metadata.handle, node, MetadataRequest(topics=()), 12)
        assert [each.node_id for each in answer.brokers] == told
        asked = DescribeClusterRequest(include_cluster_authorized_operations=False)
        described = await ask(describe_cluster.handle, node, asked, 2)
        assert [each.broker_id for each in described.brokers] == [1, 2], "tools see it at once"


async def test_a_partition_without_a_leader_says_so(tmp_path: Path) -> None:
    async with open_node(tmp_path) as alone:
        await alone.topics.create(NewTopic(name="waves", partitions=1))
        node = replace(alone, brokers=brokers(FakeLiveness()))
        answered = await ask(metadata.handle, node, MetadataRequest(topics=None), 12)
        ((partition,),) = (each.partitions for each in answered.topics)
        assert partition.error_code == ErrorCode.LEADER_NOT_AVAILABLE
        assert partition.leader_id == -1


async def test_who_hears_too_few_sends_away_whoever_asks_in_vain(tmp_path: Path) -> None:
    liveness, vainly = FakeLiveness({2}, {CLUSTER_KEY: (TWO, Epoch(1))}), context(12)
    vainly.session.leaderless_since = -math.inf
    async with open_node(tmp_path) as alone:
        await alone.topics.create(NewTopic(name="waves", partitions=1))
        node = replace(alone, brokers=Brokers(ME, partial(registered, 1, 2, 3, 4, 5), liveness))
        with pytest.raises(AskAnother):
            await metadata.handle(node, MetadataRequest(topics=None), vainly)


@pytest.mark.parametrize(
    ("alive", "leader", "named"),
    [({2, 3}, None, ME), (set(), None, None), ({2, 3}, TWO, TWO)],
    ids=["most live", "this one may be cut off", "another leads"],
)
def test_without_a_controller_changes_come_here_while_most_brokers_live(
    alive: set[int], leader: NodeId | None, named: NodeId | None
) -> None:
    liveness = FakeLiveness(alive=alive, leaders={CLUSTER_KEY: (leader, Epoch(1))})
    assert Brokers(ME, three, liveness).controller_for_clients == named


def test_a_controller_that_is_not_registered_here_yet_is_not_named() -> None:
    """A broker that has just started hears who leads before it has applied where that one is, and a
    client that is told a number alone cannot connect to it."""
    liveness = FakeLiveness(alive={2}, leaders={CLUSTER_KEY: (TWO, Epoch(1))})
    state = ClusterState()
    assert Brokers(ME, lambda: state, liveness).controller_for_clients is None
