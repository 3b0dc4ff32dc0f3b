"""DescribeTopicPartitions: its pages together are everything, each once."""

from pathlib import Path
from uuid import UUID

import pytest

from tests.broker.handlers.asking import ask
from tests.broker.nodes import open_node
from tidemark.broker.handlers import describe_topic_partitions as handler
from tidemark.broker.metadata.topic import NewTopic
from tidemark.broker.node import Node
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)


async def page(
    node: Node, *names: str, limit: int = 2_000, cursor: Cursor | None = None
) -> DescribeTopicPartitionsResponse:
    request = DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=name) for name in names],
        response_partition_limit=limit,
        cursor=cursor,
    )
    return await ask(handler.handle, node, request, 0)


async def all_pages(node: Node, *names: str, limit: int) -> list[tuple[str | None, int]]:
    found, cursor = list[tuple[str | None, int]](), None
    while True:
        answer = await page(node, *names, limit=limit, cursor=cursor)
        here = [(t.name, each.partition_index) for t in answer.topics for each in t.partitions]
        assert len(here) <= limit
        found += here
        cursor = answer.next_cursor
        if cursor is None:
            return found
        assert len(here) == limit


async def with_topics(node: Node) -> list[tuple[str | None, int]]:
    for name, count in (("b", 3), ("a", 2), ("c", 1)):
        await node.topics.create(NewTopic(name=name, partitions=count))
    return [("a", 0), ("a", 1), ("b", 0), ("b", 1), ("b", 2), ("c", 0)]


@pytest.mark.parametrize("limit", range(1, 8))
async def test_the_pages_together_are_everything_once(tmp_path: Path, limit: int) -> None:
    async with open_node(tmp_path) as node:
        everything = await with_topics(node)
        assert await all_pages(node, limit=limit) == everything
        assert await all_pages(node, "c", "b", limit=limit) == everything[2:]


async def test_a_topic_comes_with_all_that_metadata_say_of_it(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        await with_topics(node)
        (topic,) = (await page(node, "a")).topics
        made = node.topics.get("a")
        assert made is not None
        assert (topic.error_code, topic.name, topic.topic_id) == (0, "a", made.id)
        partition = topic.partitions[0]
        assert (partition.error_code, partition.leader_id) == (0, 1)
        assert [*partition.replica_nodes] == [*partition.isr_nodes] == [1]


async def test_lists_that_are_empty_are_not_null_which_java_takes_for_a_list(
    tmp_path: Path,
) -> None:
    async with open_node(tmp_path) as node:
        await with_topics(node)
        (topic,) = (await page(node, "a")).topics
        for each in topic.partitions:
            lists = (each.eligible_leader_replicas, each.last_known_elr, each.offline_replicas)
            assert all(numbers is not None and [*numbers] == [] for numbers in lists)


async def test_a_cursor_goes_on_though_its_topic_has_gone(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        await with_topics(node)
        cursor = Cursor(topic_name="aa", partition_index=1)
        assert [each.name for each in (await page(node, cursor=cursor)).topics] == ["b", "c"]


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("none", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("no/topic", ErrorCode.INVALID_TOPIC_EXCEPTION),
    ],
)
async def test_a_topic_that_is_not_there_is_named_with_an_error(
    tmp_path: Path, name: str, code: ErrorCode
) -> None:
    async with open_node(tmp_path) as node:
        (topic,) = (await page(node, name)).topics
        assert (topic.name, topic.error_code, topic.topic_id) == (name, code, UUID(int=0))


async def test_a_page_that_cannot_be_is_refused(tmp_path: Path) -> None:
    cursor = Cursor(topic_name="a", partition_index=-1)
    async with open_node(tmp_path) as node:
        await with_topics(node)
        (topic,) = (await page(node, "a", limit=5, cursor=cursor)).topics
        assert topic.error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("limit", [0, -1])
@pytest.mark.parametrize("names", [(), ("a", "c")])
async def test_there_is_no_page_with_less_than_one_partition(
    tmp_path: Path, limit: int, names: tuple[str, ...]
) -> None:
    async with open_node(tmp_path) as node:
        await with_topics(node)
        assert await page(node, *names, limit=limit) == await page(node, *names, limit=1)
