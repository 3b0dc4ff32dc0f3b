"""What a coordinator serves is served once it can be read, and imported."""

import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest
import trio

from tests.broker.clusters import SECONDS_MAX, insist, open_brokers, wait_until
from tests.broker.handlers.group_clients import AT_ONCE, GROUP, commit, create_topic, fetch, find
from tests.broker.nodes import open_node
from tests.descriptors import no_descriptors
from tidemark.broker.coordinating import served_topic
from tidemark.broker.groups.coordinator import GroupCoordinator
from tidemark.broker.groups.group_partition import GroupPartition
from tidemark.broker.metadata.topic import NewTopic
from tidemark.broker.node import Node
from tidemark.broker.reassigning.door import Asked
from tidemark.broker.replicas.replica import Replica
from tidemark.partitions.state_machines.topic_names import CONSUMER_OFFSETS
from tidemark.protocol.errors import ErrorCode, RequestError


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served_topic, "RETRY_SECONDS", 0.1)


async def test_groups_are_read_back_once_there_are_descriptors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    out, load = ExitStack(), GroupCoordinator.load

    async def load_without(
        coordinator: GroupCoordinator, replica: Replica
    ) -> Callable[[], GroupPartition]:
        if "cannot be read now" not in caplog.text:
            out.enter_context(no_descriptors())
        return await load(coordinator, replica)

    async with open_node(tmp_path, **AT_ONCE) as node:
        await find(node)
        await create_topic(node)
        await commit(node, {0: 5})
    # As in the first seconds of a broker, which imports what reads groups when it is needed. The
    # log itself may be open, and then needs no descriptor.
    monkeypatch.delitem(sys.modules, "tidemark.broker.groups.group_loading", raising=False)
    monkeypatch.setattr(GroupCoordinator, "load", load_without)
    with out:
        async with open_node(tmp_path, **AT_ONCE) as node:
            await wait_until(lambda: "cannot be read now" in caplog.text)
            assert "Too many open files" in caplog.text
            with pytest.raises(RequestError) as caught:
                node.coordinator.list_groups()
            assert caught.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            out.close()
            await node.coordinator.wait_loaded()
            assert (await fetch(node, [0]))["orders", 0].committed_offset == 5


async def test_a_partition_of_groups_is_begun_once_what_serves_it_can_be_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    out, begin = ExitStack(), GroupCoordinator.begin

    def begin_without(coordinator: GroupCoordinator, replica: Replica) -> GroupPartition:
        if "cannot be read now" not in caplog.text:
            out.enter_context(no_descriptors())
        return begin(coordinator, replica)

    # It is imported when it is needed, too.
    monkeypatch.delitem(sys.modules, "tidemark.broker.groups.group_partition")
    monkeypatch.setattr(GroupCoordinator, "begin", begin_without)
    with out:
        async with open_node(tmp_path, **AT_ONCE) as node:
            await find(node)
            await wait_until(lambda: "cannot be read now" in caplog.text)
            assert "Too many open files" in caplog.text
            out.close()
            await node.coordinator.wait_loaded()
            await create_topic(node)
            assert await commit(node, {0: 5}) == {0: ErrorCode.NONE}
            assert node.coordinator.find(GROUP) == node.node_id


async def test_who_has_given_a_partition_up_says_who_serves_it(tmp_path: Path) -> None:
    def holds(node: Node) -> bool:
        return node.topics.replica(CONSUMER_OFFSETS, 0) is not None

    async with open_brokers(
        tmp_path, 2, offsets_topic_num_partitions=1, offsets_topic_replication_factor=1
    ) as brokers:
        await insist(brokers[1].coordinator.ensure_topic)
        await wait_until(lambda: any(map(holds, brokers.nodes)))
        (former,) = filter(holds, brokers.nodes)
        (other,) = (node for node in brokers.nodes if node is not former)
        await wait_until(lambda: former.topics.get(CONSUMER_OFFSETS) is not None)

        async def move() -> None:
            (controller,) = (node for node in brokers.nodes if node.controller.is_here)
            asked = Asked(CONSUMER_OFFSETS, 0, (other.node_id,))
            (error,) = await controller.reassigning.door.take([asked])
            assert error is None

        await insist(move)
        await wait_until(lambda: not holds(former) and holds(other))
        await wait_until(lambda: finds(former, other) and finds(other, other))
        answer = await commit(former, {0: 5}, topic=CONSUMER_OFFSETS)
        assert answer == {0: ErrorCode.NOT_COORDINATOR}


async def test_whose_copy_is_damaged_says_who_serves_it(tmp_path: Path) -> None:
    async with open_brokers(tmp_path, 3, offsets_topic_num_partitions=1) as brokers:
        await brokers.create(NewTopic(name="orders", partitions=1))
        await insist(brokers[1].coordinator.ensure_topic)
        with trio.fail_after(SECONDS_MAX):
            leader = brokers[1]
            while await commit(leader, {0: 5}) != {0: ErrorCode.NONE}:
                await trio.sleep(0.02)
                leader = next((node for node in brokers.nodes if finds(node, node)), leader)
        number = next(each for each in (1, 2, 3) if brokers[each] is not leader)
        await brokers.stop(number)
        (log,) = (tmp_path / str(number) / f"{CONSUMER_OFFSETS}-0").glob("*.log")
        log.write_bytes(b"\xff" * log.stat().st_size)
        await brokers.start(number)
        damaged = brokers[number].topics.replica(CONSUMER_OFFSETS, 0)
        assert damaged is not None
        assert damaged.failure is not None
        await wait_until(lambda: finds(brokers[number], leader))


def finds(node: Node, coordinator: Node) -> bool:
    """Whether it says that a group is served there."""
    try:
        return node.coordinator.find(GROUP) == coordinator.node_id
    except RequestError:
        return False
