"""What a coordinator serves is served once it can be read, and imported."""

import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.broker.clusters import wait_until
from tests.broker.handlers.group_clients import AT_ONCE, GROUP, commit, create_topic, fetch, find
from tests.broker.nodes import open_node
from tests.descriptors import no_descriptors
from tidemark.broker.coordinating import served_topic
from tidemark.broker.groups.coordinator import GroupCoordinator
from tidemark.broker.groups.group_partition import GroupPartition
from tidemark.broker.replicas.replica import Replica
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
