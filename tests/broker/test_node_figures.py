"""What each broker of a cluster shows at a scrape."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path

import trio

from tests.broker.clusters import SECONDS_MAX, Brokers, open_brokers, wait_until
from tests.broker.handlers.producing import batch, produce, request
from tidemark.broker.metadata.partition_view import partition_views
from tidemark.broker.metadata.topic import NewTopic
from tidemark.broker.metrics import LedFigures
from tidemark.broker.node import Node
from tidemark.broker.node_figures import NodeFigures
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.types import NodeId, Offset, TopicPartition

TIDES = TopicPartition("tides", 0)


def figures(brokers: Brokers, number: int) -> NodeFigures:
    return NodeFigures(brokers[number], "")


async def led(brokers: Brokers, number: int) -> Mapping[TopicPartition, LedFigures]:
    """As a scrape's thread sees it."""
    nowhere = [TopicPartition("tides", 1), TopicPartition("nosuch", 0)]
    return await trio.to_thread.run_sync(figures(brokers, number).led, [TIDES, *nowhere])


async def comes_to(look: Callable[[], Awaitable[object]], wanted: object) -> None:
    """On a busy machine a look may be too early, or too slow for the patience of a scrape."""
    with trio.fail_after(SECONDS_MAX):
        while await look() != wanted:  # noqa: ASYNC110
            await trio.sleep(0.05)


async def test_only_the_leader_shows_a_partition_and_how_its_replicas_do(tmp_path: Path) -> None:
    async with open_brokers(tmp_path, 3) as brokers:
        assigned = tuple(map(NodeId, (1, 2, 3)))
        await brokers.create(NewTopic(name="tides", assignments=(assigned,)))
        well = LedFigures(replicas=3, in_sync=3, is_led_by_preferred=True)
        await comes_to(partial(led, brokers, 1), {TIDES: well})
        assert await led(brokers, 2) == await led(brokers, 3) == {}
        assert [figures(brokers, number).brokers() for number in (1, 2, 3)] == [3, 3, 3]

        await brokers.stop(1)
        topic = brokers[2].topics.get("tides")
        assert topic is not None
        key = PartitionKey(topic.id, 0)
        await wait_until(lambda: brokers[2].brokers.leader_of(key)[0] in (2, 3))
        leader = brokers[2].brokers.leader_of(key)[0]
        assert leader is not None
        lame = LedFigures(replicas=3, in_sync=2, is_led_by_preferred=False)
        await comes_to(partial(led, brokers, leader), {TIDES: lame})
        assert figures(brokers, leader).brokers() == 2


async def test_how_far_others_are_is_asked_and_remembered_while_they_do_not_answer(
    tmp_path: Path,
) -> None:
    async with open_brokers(tmp_path, 3) as brokers:
        await brokers.create(NewTopic(name="t", assignments=((NodeId(2),), (NodeId(3),))))
        await wait_until(lambda: leaders_of_t(brokers[1]) == [2, 3])
        await wait_until(lambda: serves_t(brokers[2], 0) and serves_t(brokers[3], 1))
        assert (await produce(brokers[2], request(batch()))).error_code == ErrorCode.NONE
        asked = {TopicPartition("t", partition) for partition in range(3)}
        shown = figures(brokers, 1)

        async def ends() -> Mapping[TopicPartition, Offset]:
            return dict(await trio.to_thread.run_sync(shown.ends_elsewhere, asked))

        both = {TopicPartition("t", 0): Offset(1), TopicPartition("t", 1): Offset(0)}
        await comes_to(ends, both)
        await brokers.stop(2)
        await wait_until(lambda: leaders_of_t(brokers[1]) == [None, 3])
        assert await ends() == both
        await brokers.delete("t")
        await wait_until(lambda: brokers[1].topics.get("t") is None)
        assert await ends() == {}


def serves_t(node: Node, partition: int) -> bool:
    topic = node.topics.get("t")
    replica = None if topic is None else topic.replica(partition)
    return replica is not None and replica.is_serving


def leaders_of_t(node: Node) -> list[NodeId | None]:
    topic = node.topics.get("t")
    if topic is None:
        return []
    views = partition_views(node.brokers, topic, range(topic.partition_count))
    return [view.leader for view in views]
