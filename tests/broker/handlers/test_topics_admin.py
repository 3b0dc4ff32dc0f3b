"""CreateTopics, DeleteTopics, CreatePartitions: trap M9 and what goes with it."""

from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from tests.broker.handlers.asking import ask
from tests.broker.nodes import open_node
from tidemark.broker.handlers import create_partitions, create_topics, delete_topics
from tidemark.broker.metadata.topic import NewTopic
from tidemark.broker.node import Node
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from tidemark.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
)
from tidemark.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState


def topic(name: str = "waves", **fields: Any) -> CreatableTopic:  # Any: any field of it
    values = {"num_partitions": 1, "replication_factor": 1, "assignments": (), "configs": ()}
    return CreatableTopic(name=name, **{**values, **fields})


async def create(
    node: Node, *topics: CreatableTopic, version: int = 7, validate_only: bool = False
) -> list[CreatableTopicResult]:
    request = CreateTopicsRequest(topics=topics, validate_only=validate_only)
    return list((await ask(create_topics.handle, node, request, version)).topics)


@pytest.mark.parametrize("version", range(2, 8))
async def test_trap_m9_a_success_has_no_error_message(tmp_path: Path, version: int) -> None:
    async with open_node(tmp_path) as node:
        (made,) = await create(node, topic(), version=version)
        assert (made.error_code, made.error_message) == (ErrorCode.NONE, None)
        assert node.topics.get("waves") is not None


async def test_trap_m9_from_version_5_on_the_answer_describes_the_topic(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        config = CreatableTopicConfig(name="retention.ms", value="5")
        (made,) = await create(node, topic(num_partitions=3, configs=(config,)))
        assert (made.num_partitions, made.replication_factor) == (3, 1)
        assert made.topic_id == node.topics.get("waves").id  # type: ignore[union-attr] # it is there
        configs = {each.name: each for each in made.configs or ()}
        assert (configs["retention.ms"].value, configs["retention.ms"].config_source) == ("5", 1)
        assert configs["segment.ms"].config_source == 5


async def test_trap_m9_an_existing_topic_is_an_error_of_its_own(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        await create(node, topic())
        (again,) = await create(node, topic())
        assert again.error_code == ErrorCode.TOPIC_ALREADY_EXISTS
        assert again.error_message


async def test_trap_m9_minus_one_is_the_default(tmp_path: Path) -> None:
    async with open_node(tmp_path, num_partitions=6) as node:
        (made,) = await create(node, topic(num_partitions=-1, replication_factor=-1))
        assert (made.num_partitions, made.replication_factor) == (6, 1)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"configs": (CreatableTopicConfig(name="x.y", value="1"),)}, ErrorCode.INVALID_CONFIG),
        (
            {"configs": (CreatableTopicConfig(name="retention.ms", value="1_0"),)},
            ErrorCode.INVALID_CONFIG,
        ),
        (
            {"configs": (CreatableTopicConfig(name="retention.ms", value="soon"),)},
            ErrorCode.INVALID_CONFIG,
        ),
        (
            {"configs": (CreatableTopicConfig(name="retention.ms", value=None),)},
            ErrorCode.INVALID_CONFIG,
        ),
        ({"replication_factor": 2}, ErrorCode.INVALID_REPLICATION_FACTOR),
        ({"replication_factor": 0}, ErrorCode.INVALID_REPLICATION_FACTOR),
        ({"num_partitions": 0}, ErrorCode.INVALID_PARTITIONS),
        ({"num_partitions": -2}, ErrorCode.INVALID_PARTITIONS),
        ({"name": "a b"}, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ({"name": "__cluster"}, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ({"name": "__cluster_metadata"}, ErrorCode.INVALID_TOPIC_EXCEPTION),
    ],
)
async def test_trap_m9_what_cannot_be_is_refused_and_the_others_are_made(
    tmp_path: Path, fields: dict[str, Any], code: ErrorCode
) -> None:
    async with open_node(tmp_path) as node:
        bad, good = await create(node, topic(**fields), topic("good"))
        assert (bad.error_code, good.error_code) == (code, ErrorCode.NONE)
        assert bad.error_message
        assert [each.name for each in node.topics] == ["good"]


async def test_trap_m9_validate_only_makes_nothing_and_finds_the_same_mistakes(
    tmp_path: Path,
) -> None:
    async with open_node(tmp_path) as node:
        fine, bad = await create(
            node, topic(), topic("bad", replication_factor=9), validate_only=True
        )
        assert fine.error_code == ErrorCode.NONE
        assert fine.num_partitions == 1
        assert bad.error_code == ErrorCode.INVALID_REPLICATION_FACTOR
        assert list(node.topics) == []


async def test_a_topic_named_twice_is_made_never(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        (answer,) = await create(node, topic(), topic(num_partitions=5))
        assert answer.error_code == ErrorCode.INVALID_REQUEST
        assert list(node.topics) == []


def assigned(*brokers: list[int], first: int = 0) -> tuple[CreatableReplicaAssignment, ...]:
    return tuple(
        CreatableReplicaAssignment(partition_index=index, broker_ids=broker_ids)
        for index, broker_ids in enumerate(brokers, start=first)
    )


async def test_assignments_say_how_many_partitions_there_are(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        open_numbers: dict[str, Any] = {"num_partitions": -1, "replication_factor": -1}
        fine, elsewhere, gap, both = await create(
            node,
            topic(assignments=assigned([1], [1]), **open_numbers),
            topic("elsewhere", assignments=assigned([2]), **open_numbers),
            topic("gap", assignments=assigned([1], first=1), **open_numbers),
            topic("both", assignments=assigned([1])),
        )
        assert (fine.error_code, fine.num_partitions) == (ErrorCode.NONE, 2)
        assert elsewhere.error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
        assert gap.error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
        assert both.error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("validate_only", [False, True])
async def test_a_partition_that_is_assigned_to_nobody_is_refused(
    tmp_path: Path, validate_only: bool
) -> None:
    async with open_node(tmp_path) as node:
        numbers: dict[str, Any] = {"num_partitions": -1, "replication_factor": -1}
        cases: list[list[list[int]]] = [[[]], [[1], []], [[], [1]]]
        for brokers in cases:
            nobody = topic(assignments=assigned(*brokers), **numbers)
            (made,) = await create(node, nobody, validate_only=validate_only)
            assert made.error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
            assert made.error_message
        assert node.topics.get("waves") is None


async def delete(node: Node, version: int, **fields: Any) -> list[tuple[str | None, int]]:
    request = DeleteTopicsRequest(timeout_ms=1000, **fields)  # Any: any field of it
    response = await ask(delete_topics.handle, node, request, version)
    return [(each.name, each.error_code) for each in response.responses]


@pytest.mark.parametrize("version", range(1, 6))
async def test_topics_are_deleted_by_name(tmp_path: Path, version: int) -> None:
    async with open_node(tmp_path) as node:
        await create(node, topic())
        assert await delete(node, version, topic_names=("none", "waves")) == [
            ("none", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            ("waves", ErrorCode.NONE),
        ]
        assert list(node.topics) == []


async def test_topics_are_deleted_by_id(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        (made,) = await create(node, topic())
        both = DeleteTopicState(name="waves", topic_id=made.topic_id)
        by_id = DeleteTopicState(name=None, topic_id=made.topic_id)
        unknown = DeleteTopicState(name=None, topic_id=UUID(int=5))
        assert await delete(node, 6, topics=(both, unknown, by_id)) == [
            ("waves", ErrorCode.INVALID_REQUEST),
            (None, ErrorCode.UNKNOWN_TOPIC_ID),
            ("waves", ErrorCode.NONE),
        ]


@pytest.mark.parametrize(
    ("version", "code"),
    [(2, ErrorCode.INVALID_REQUEST), (3, ErrorCode.TOPIC_DELETION_DISABLED)],
)
async def test_deletion_can_be_turned_off(tmp_path: Path, version: int, code: ErrorCode) -> None:
    async with open_node(tmp_path, delete_topic_enable=False) as node:
        await create(node, topic())
        assert await delete(node, version, topic_names=("waves",)) == [("waves", code)]
        assert node.topics.get("waves") is not None


async def grow(
    node: Node, *topics: CreatePartitionsTopic, version: int = 3, validate_only: bool = False
) -> list[int]:
    request = CreatePartitionsRequest(topics=topics, timeout_ms=1000, validate_only=validate_only)
    response = await ask(create_partitions.handle, node, request, version)
    return [each.error_code for each in response.results]


def to(count: int, name: str = "waves", *assignments: list[int]) -> CreatePartitionsTopic:
    placed = tuple(CreatePartitionsAssignment(broker_ids=each) for each in assignments)
    return CreatePartitionsTopic(name=name, count=count, assignments=placed or None)


@pytest.mark.parametrize("version", range(4))
async def test_a_topic_grows_and_never_shrinks(tmp_path: Path, version: int) -> None:
    async with open_node(tmp_path) as node:
        made = await node.topics.create(NewTopic(name="waves", partitions=2))
        assert await grow(node, to(3), to(9, "none"), version=version) == [
            ErrorCode.NONE,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ]
        for count in (3, 2, 0, -1):
            assert await grow(node, to(count), version=version) == [ErrorCode.INVALID_PARTITIONS]
        grown = node.topics.by_id(made.id)
        assert grown is not None
        assert grown.partition_count == len(grown.replicas) == 3


async def test_growing_can_be_tried_out(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        made = await node.topics.create(NewTopic(name="waves", partitions=2))
        assert await grow(node, to(5), validate_only=True) == [ErrorCode.NONE]
        assert node.topics.by_id(made.id) is made


async def test_new_partitions_can_be_assigned_to_this_broker_only(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        await node.topics.create(NewTopic(name="waves", partitions=1))
        wrong = [ErrorCode.INVALID_REPLICA_ASSIGNMENT]
        assert await grow(node, to(3, "waves", [1])) == wrong
        assert await grow(node, to(3, "waves", [1], [2])) == wrong
        assert await grow(node, to(3, "waves", [1], [])) == wrong
        assert await grow(node, to(3, "waves", [1], [1])) == [ErrorCode.NONE]


async def test_a_topic_that_is_named_twice_does_not_grow(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        made = await node.topics.create(NewTopic(name="waves", partitions=1))
        assert await grow(node, to(2), to(3)) == [ErrorCode.INVALID_REQUEST]
        assert node.topics.by_id(made.id) is made
