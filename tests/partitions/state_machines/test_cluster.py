"""The cluster's metadata: names, versions, and what is refused."""

from dataclasses import replace
from uuid import UUID

import pytest

from tests.partitions.state_machines.clusters import create, on, refusal, register, with_brokers
from tidemark.partitions.state_machines.cluster import ClusterState, VersionConflict
from tidemark.partitions.state_machines.cluster_brokers import voters_wanted
from tidemark.partitions.state_machines.cluster_commands import (
    AllocateProducerIds,
    CreatePartitions,
    DeleteTopic,
    FoundCluster,
    ProducerIdBlock,
    SetTopicConfigs,
    UnregisterBroker,
)
from tidemark.partitions.state_machines.cluster_topics import PARTITIONS_MAX
from tidemark.partitions.state_machines.cluster_values import (
    Assignment,
)
from tidemark.partitions.state_machines.topic_names import (
    resolve_partitions,
    resolve_replication_factor,
)
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.types import NodeId, ProducerId


def test_a_created_topic_is_found_by_name_and_by_id() -> None:
    state = with_brokers(1)
    state.apply(create(state, "orders", partitions=3, configs={"flush": "os"}))
    topic = state.topic("orders")
    assert topic is not None
    assert topic is state.topic_by_id(UUID(int=1))
    assert (topic.partitions, topic.configs, topic.created_ms) == (3, {"flush": "os"}, 5)
    assert state.version == 2


@pytest.mark.parametrize("name", ["", ".", "..", "a" * 250, "a/b", "a b", "naïve", "a\n"])
def test_trap_m3_an_invalid_name_creates_nothing(name: str) -> None:
    state = with_brokers(1)
    assert refusal(state, create(state, name)) is ErrorCode.INVALID_TOPIC_EXCEPTION


def test_trap_m3_names_that_differ_only_in_dot_and_underscore_collide() -> None:
    state = with_brokers(1)
    state.apply(create(state, "a.b_c"))
    collision = create(state, "a_b.c", number=2)
    assert refusal(state, collision) is ErrorCode.INVALID_TOPIC_EXCEPTION
    state.apply(DeleteTopic(at_version=state.version, id=UUID(int=1)))
    state.apply(create(state, "a_b.c", number=2))


def test_trap_m9_an_existing_topic_is_not_created_again() -> None:
    state = with_brokers(1)
    state.apply(create(state, "orders"))
    assert refusal(state, create(state, "orders", number=2)) is ErrorCode.TOPIC_ALREADY_EXISTS


def test_trap_m9_an_unknown_config_is_refused() -> None:
    state = with_brokers(1)
    command = create(state, "orders", configs={"colour": "blue"})
    assert refusal(state, command) is ErrorCode.INVALID_CONFIG


def test_trap_m9_validating_creates_nothing_and_refuses_the_same() -> None:
    state = with_brokers(1)
    state.check(create(state, "orders"))
    assert not state.topics
    with pytest.raises(RequestError):
        state.check(create(state, "no/slash"))


def test_trap_m9_minus_one_asks_for_the_defaults() -> None:
    assert resolve_partitions(-1, default=4) == 4
    assert resolve_partitions(2, default=4) == 2
    assert resolve_replication_factor(-1, default=3, brokers=1) == 1
    assert resolve_replication_factor(1, default=3, brokers=1) == 1


@pytest.mark.parametrize("partitions", [0, -2])
def test_trap_m9_no_partitions_are_refused(partitions: int) -> None:
    with pytest.raises(RequestError) as caught:
        resolve_partitions(partitions, default=1)
    assert caught.value.code is ErrorCode.INVALID_PARTITIONS


@pytest.mark.parametrize("replicas", [0, 2, -2])
def test_trap_m9_more_replicas_than_brokers_are_refused(replicas: int) -> None:
    with pytest.raises(RequestError) as caught:
        resolve_replication_factor(replicas, default=1, brokers=1)
    assert caught.value.code is ErrorCode.INVALID_REPLICATION_FACTOR


def test_the_number_of_partitions_only_grows() -> None:
    state = with_brokers(1)
    state.apply(create(state, "orders", partitions=2))

    def add(partitions: int) -> CreatePartitions:
        added = (on(1),) * partitions
        return CreatePartitions(at_version=state.version, id=UUID(int=1), assignments=added)

    assert refusal(state, add(0)) is ErrorCode.INVALID_PARTITIONS
    assert refusal(state, add(PARTITIONS_MAX)) is ErrorCode.INVALID_PARTITIONS
    state.apply(add(1))
    assert state.topics["orders"].partitions == 3


@pytest.mark.parametrize(
    "assignments", [(on(),), (on(1, 1),), (on(1, 3),), (on(1, 2), on(1))], ids=str
)
def test_assignments_name_known_brokers_once_and_equally_many(
    assignments: tuple[Assignment, ...],
) -> None:
    state = with_brokers(1, 2)
    bad = create(state, "bad", assignments=assignments)
    assert refusal(state, bad) is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    state.apply(create(state, "orders", assignments=(on(1, 2),)))
    add = CreatePartitions(at_version=state.version, id=UUID(int=1), assignments=assignments)
    assert refusal(state, add) is ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_partitions_that_are_added_have_as_many_replicas_as_the_others() -> None:
    state = with_brokers(1, 2)
    state.apply(create(state, "orders", assignments=(on(2, 1), on(1, 2))))
    one = CreatePartitions(at_version=state.version, id=UUID(int=1), assignments=(on(1),))
    assert refusal(state, one) is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    state.apply(replace(one, assignments=(on(2, 1),)))
    topic = state.topics["orders"]
    assert topic.assignments == (on(2, 1), on(1, 2), on(2, 1))
    assert (topic.partitions, topic.replication_factor) == (3, 2)


def test_a_later_start_of_a_broker_replaces_the_one_before() -> None:
    state = with_brokers(1, 2)
    again = replace(register(state, 1, incarnation=5), rack=None)
    state.apply(again)
    assert state.brokers[NodeId(1)] == again.broker
    assert list(state.brokers) == [1, 2], "the order of their coming stays"
    state.apply(replace(again, at_version=state.version))


@pytest.mark.parametrize(
    ("node", "directory", "incarnation", "code", "words"),
    [
        (1, 1, 4, ErrorCode.STALE_BROKER_EPOCH, "this is its start 4, and start 5 has registered"),
        (1, 1, 5, ErrorCode.DUPLICATE_BROKER_REGISTRATION, "must have been copied"),
        (1, 9, 6, ErrorCode.DUPLICATE_BROKER_REGISTRATION, "a broker 1 already"),
        (3, 1, 6, ErrorCode.DUPLICATE_BROKER_REGISTRATION, "is that of broker 1"),
    ],
)
def test_a_broker_that_is_not_who_it_says_it_is_is_refused(
    node: int, directory: int, incarnation: int, code: ErrorCode, words: str
) -> None:
    state = ClusterState()
    state.apply(register(state, 1, incarnation=5))
    other = replace(
        register(state, node, directory=directory, incarnation=incarnation), rack="elsewhere"
    )
    assert refusal(state, other) is code
    with pytest.raises(RequestError, match=words):
        state.check(other)


def test_a_broker_without_replicas_can_be_forgotten() -> None:
    state = with_brokers(1, 2)
    state.apply(create(state, "orders", assignments=(on(1),)))

    def forget(node: int) -> UnregisterBroker:
        return UnregisterBroker(at_version=state.version, node_id=NodeId(node))

    assert refusal(state, forget(1)) is ErrorCode.INVALID_REQUEST
    assert refusal(state, forget(3)) is ErrorCode.BROKER_ID_NOT_REGISTERED
    state.apply(forget(2))
    assert list(state.brokers) == [1]


@pytest.mark.parametrize(
    ("brokers", "current", "wanted"),
    [
        ((1,), (1,), (1,)),
        ((1, 2), (1,), (1,)),
        ((5, 1, 2), (5,), (1, 2, 5)),
        ((5, 1, 2, 4), (1, 2, 5), (1, 2, 5)),
        ((5, 1, 2, 4, 3), (1, 2, 5), (1, 2, 3, 4, 5)),
        ((5, 1, 2, 4, 3, 6), (1, 2, 3, 4, 5), (1, 2, 3, 4, 5)),
        ((1, 2, 4), (1, 2, 5), (1, 2, 4)),
        ((2, 1), (1, 2, 5), (2,)),
        ((5, 1, 2, 4), (1, 2, 3, 4, 5), (1, 2, 5)),
    ],
)
def test_voters_grow_in_whole_steps_in_the_order_of_registration(
    brokers: tuple[int, ...], current: tuple[int, ...], wanted: tuple[int, ...]
) -> None:
    assert voters_wanted(on(*brokers), on(*current), lambda _: True) == on(*wanted)


def test_only_the_living_become_voters_and_nothing_is_done_by_halves() -> None:
    def wanted(*dead: int) -> Assignment:
        return voters_wanted(on(1, 2, 3, 4), on(1), lambda node: node not in dead)

    assert wanted(2) == on(1, 3, 4)
    assert wanted(2, 3) == on(1)
    assert wanted(1) == on(1, 2, 3), "who votes already is not asked"


def test_configs_are_replaced_as_a_whole() -> None:
    state = with_brokers(1)
    state.apply(create(state, "orders", configs={"flush": "os"}))
    state.apply(
        SetTopicConfigs(at_version=state.version, id=UUID(int=1), configs={"retention.ms": "5"})
    )
    assert state.topics["orders"].configs == {"retention.ms": "5"}


def test_a_topic_created_again_under_its_name_is_another_topic() -> None:
    state = with_brokers(1)
    state.apply(create(state, "orders"))
    state.apply(DeleteTopic(at_version=state.version, id=UUID(int=1)))
    assert refusal(state, DeleteTopic(at_version=1, id=UUID(int=1))) is not ErrorCode.NONE
    state.apply(create(state, "orders", number=2))
    gone = DeleteTopic(at_version=state.version, id=UUID(int=1))
    assert refusal(state, gone) is ErrorCode.UNKNOWN_TOPIC_ID


def test_a_command_decided_at_another_version_is_refused() -> None:
    state = with_brokers(1)
    late = create(state, "late", number=2)
    state.apply(create(state, "orders"))
    with pytest.raises(VersionConflict):
        state.apply(late)


def test_producer_ids_are_given_once() -> None:
    state = ClusterState()

    def allocate(count: int) -> AllocateProducerIds:
        return AllocateProducerIds(at_version=state.version, node_id=NodeId(1), count=count)

    blocks = [state.apply(allocate(count)) for count in (1000, 10)]
    assert blocks == [
        ProducerIdBlock(first=ProducerId(0), end=ProducerId(1000)),
        ProducerIdBlock(first=ProducerId(1000), end=ProducerId(1010)),
    ]
    assert refusal(state, allocate(0)) is ErrorCode.INVALID_REQUEST


def test_a_cluster_is_founded_once() -> None:
    state = ClusterState()
    state.apply(FoundCluster(at_version=0, cluster_id="first"))
    again = FoundCluster(at_version=1, cluster_id="second")
    assert refusal(state, again) is ErrorCode.INVALID_REQUEST
    assert state.cluster_id == "first"
