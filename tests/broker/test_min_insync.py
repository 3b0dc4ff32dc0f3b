"""acks=all where more replicas are asked for than a majority."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest
import trio

from tests.broker.clusters import Brokers, open_brokers, wait_until
from tests.broker.handlers.producing import batch, begin, produce, request
from tidemark.broker.metadata.topic import NewTopic
from tidemark.broker.network.requests import Pending
from tidemark.broker.node import Node
from tidemark.broker.replicas.replica import Replica
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.types import NodeId


async def new_topic(brokers: Brokers, min_insync: int, replicas: int = 3) -> tuple[Node, Replica]:
    """A topic, with a replica on each broker where nothing else is said; where it is led."""
    wanted = NewTopic(
        name="t",
        partitions=1,
        replication_factor=replicas,
        configs={"min.insync.replicas": str(min_insync)},
    )
    await brokers.create(wanted)
    await wait_until(lambda: len(serving(brokers.nodes)) == 1)
    ((node, replica),) = serving(brokers.nodes)
    return node, replica


def serving(nodes: Sequence[Node]) -> list[tuple[Node, Replica]]:
    replicas = [(node, node.topics.replica("t", 0)) for node in nodes]
    return [(node, each) for node, each in replicas if each is not None and each.is_serving]


def held_by_all(brokers: Brokers, end_offset: int) -> bool:
    replicas = [node.topics.replica("t", 0) for node in brokers.nodes]
    return all(each is not None and each.log_end >= end_offset for each in replicas)


@pytest.mark.parametrize("min_insync", [1, 2, 3])
async def test_all_acks_wait_for_as_many_as_are_asked_for(tmp_path: Path, min_insync: int) -> None:
    async with open_brokers(tmp_path, 3) as brokers:
        node, replica = await new_topic(brokers, min_insync)
        for count in range(1, 4):
            with trio.fail_after(10):
                answer = await produce(node, request(batch()))
            assert answer.error_code == ErrorCode.NONE
            held = replica.member.group.held_by(min_insync)
            assert held.offset >= count
            if min_insync == 3:
                assert held_by_all(brokers, count)


@pytest.mark.parametrize("replicas", [1, 2, 3])
async def test_more_than_there_are_replicas_is_all_of_them(tmp_path: Path, replicas: int) -> None:
    async with open_brokers(tmp_path, 3) as brokers:
        node, replica = await new_topic(brokers, 4, replicas)
        for count in range(1, 4):
            with trio.fail_after(10):
                answer = await produce(node, request(batch()))
            assert answer.error_code == ErrorCode.NONE
            assert replica.member.group.held_by(replicas).offset >= count


async def test_a_majority_is_not_enough_where_all_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_brokers(tmp_path, 3) as brokers:
        node, replica = await new_topic(brokers, 3)
        assert (await produce(node, request(batch()))).error_code == ErrorCode.NONE
        slow = next(number for number in (1, 2, 3) if number != node.node_id)
        disk, held = brokers[slow].disk, list[Callable[[], None]]()
        write = disk.write

        def hold(*args: object, **options: object) -> None:
            held.append(partial(write, *args, **options))  # type: ignore[arg-type]  # as given

        monkeypatch.setattr(disk, "write", hold)
        waits = begin(node, request(batch()))
        assert isinstance(waits, Pending)
        await wait_until(lambda: replica.high_watermark == 2)
        assert not waits.is_complete
        monkeypatch.setattr(disk, "write", write)
        for write_late in held:
            write_late()
        await wait_until(lambda: waits.is_complete)


async def test_with_too_few_replicas_nothing_is_appended_for_all_acks(tmp_path: Path) -> None:
    async with open_brokers(tmp_path, 3) as brokers:
        node, replica = await new_topic(brokers, 3)
        assert (await produce(node, request(batch()))).error_code == ErrorCode.NONE
        gone = NodeId(next(number for number in (1, 2, 3) if number != node.node_id))
        await brokers.stop(gone)
        await wait_until(lambda: not node.brokers.is_alive(gone))
        refused = await produce(node, request(batch()))
        assert refused.error_code == ErrorCode.NOT_ENOUGH_REPLICAS
        assert replica.log_end == 1
        for_one = await produce(node, request(batch(), acks=1))
        assert for_one.error_code == ErrorCode.NONE
        await wait_until(lambda: replica.high_watermark == 2)
