"""What each broker of a cluster shows at a scrape."""

from collections.abc import Mapping
from pathlib import Path

import trio

from tests.broker.clusters import SECONDS_MAX, Brokers, open_brokers, wait_until
from tidemark.broker.metadata.topic import NewTopic
from tidemark.broker.metrics import LedFigures
from tidemark.broker.node_figures import NodeFigures
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.types import NodeId, TopicPartition

TIDES = TopicPartition("tides", 0)


def figures(brokers: Brokers, number: int) -> NodeFigures:
    return NodeFigures(brokers[number], "")


async def led(brokers: Brokers, number: int) -> Mapping[TopicPartition, LedFigures]:
    """As a scrape's thread sees it."""
    nowhere = [TopicPartition("tides", 1), TopicPartition("nosuch", 0)]
    return await trio.to_thread.run_sync(figures(brokers, number).led, [TIDES, *nowhere])


async def wait_led(brokers: Brokers, number: int, wanted: LedFigures) -> None:
    with trio.fail_after(SECONDS_MAX):
        while await led(brokers, number) != {TIDES: wanted}:  # noqa: ASYNC110
            await trio.sleep(0.05)


async def test_only_the_leader_shows_a_partition_and_how_its_replicas_do(tmp_path: Path) -> None:
    async with open_brokers(tmp_path, 3) as brokers:
        assigned = tuple(map(NodeId, (1, 2, 3)))
        await brokers.create(NewTopic(name="tides", assignments=(assigned,)))
        well = LedFigures(replicas=3, in_sync=3, is_led_by_preferred=True)
        await wait_led(brokers, 1, well)
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
        await wait_led(brokers, leader, lame)
        assert figures(brokers, leader).brokers() == 2
