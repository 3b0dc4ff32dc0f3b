"""Finding, listing, describing and deleting groups."""

from pathlib import Path
from typing import Any

import pytest

from tests.broker.handlers.asking import ask
from tests.broker.handlers.group_clients import (
    AT_ONCE,
    GROUP,
    commit,
    create_topic,
    fetch,
    find,
    join,
    sync,
)
from tests.broker.handlers.turns import counting_turns
from tests.broker.nodes import open_node
from tidemark.broker.access.operations import ALL_BITS
from tidemark.broker.config import Address
from tidemark.broker.handlers import (
    consumer_group_describe,
    delete_groups,
    delete_topics,
    describe_groups,
    describe_rebalances,
    find_coordinator,
    list_groups,
    offset_delete,
)
from tidemark.broker.node import Node
from tidemark.partitions.state_machines.topic_names import CONSUMER_OFFSETS
from tidemark.protocol.acls import ResourceType
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from tidemark.protocol.messages.delete_groups import DeleteGroupsRequest
from tidemark.protocol.messages.delete_topics import DeleteTopicsRequest
from tidemark.protocol.messages.describe_groups import DescribeGroupsRequest
from tidemark.protocol.messages.describe_rebalances import DescribeRebalancesRequest
from tidemark.protocol.messages.find_coordinator import FindCoordinatorRequest
from tidemark.protocol.messages.list_groups import ListGroupsRequest
from tidemark.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from tidemark.protocol.schema import Message

OUTSIDE = Address("broker.example", 9999)


async def test_rebalances_are_described_with_the_members_own_words(tmp_path: Path) -> None:
    async with open_node(tmp_path, **AT_ONCE) as node:
        await find(node)
        joined = await join(node)
        await sync(node, joined)
        request = DescribeRebalancesRequest(groups=[GROUP, "no"])
        found, unknown = (await ask(describe_rebalances.handle, node, request, 0)).groups
        (rebalance,) = found.rebalances
        assert rebalance.generation == joined.generation_id
        (reason,) = rebalance.reasons
        assert reason.startswith(f"member {joined.member_id} of client ")
        assert reason.endswith(" joined")
        assert unknown.error_code == ErrorCode.GROUP_ID_NOT_FOUND


@pytest.mark.parametrize("version", range(6))
async def test_trap_g9_one_coordinator_up_to_version_3_and_one_for_each_key_from_4(
    tmp_path: Path, version: int
) -> None:
    async with open_node(tmp_path, **AT_ONCE) as node:
        if version < 4:
            request = FindCoordinatorRequest(key="one")
        else:
            request = FindCoordinatorRequest(coordinator_keys=["one", "two"])
        answer = await ask(find_coordinator.handle, node, request, version, listener=OUTSIDE)
        here = (node.node_id, "broker.example", 9999, ErrorCode.NONE)
        if version < 4:
            assert (answer.node_id, answer.host, answer.port, answer.error_code) == here
        else:
            assert [c.key for c in answer.coordinators] == ["one", "two"]
            assert {(c.node_id, c.host, c.port, c.error_code) for c in answer.coordinators} == {
                here
            }


async def test_looking_for_a_coordinator_makes_the_topic_that_groups_are_kept_in(
    tmp_path: Path,
) -> None:
    async with open_node(tmp_path, **AT_ONCE) as node:
        assert node.topics.get(CONSUMER_OFFSETS) is None
        await find(node)
        topic = node.topics.get(CONSUMER_OFFSETS)
        assert topic is not None
        assert topic.partition_count == 2
        assert topic.config.is_compacted


async def test_trap_g9_a_coordinator_of_another_kind_is_refused_in_words(tmp_path: Path) -> None:
    async with open_node(tmp_path, **AT_ONCE) as node:
        request = FindCoordinatorRequest(key_type=2, coordinator_keys=["id"])
        answer = await ask(find_coordinator.handle, node, request, 4)
        assert answer.coordinators[0].error_code == ErrorCode.INVALID_REQUEST
        assert answer.coordinators[0].error_message is not None


async def states(node: Node, *names: str, types: tuple[str, ...] = ()) -> list[tuple[str, str]]:
    request = ListGroupsRequest(states_filter=names, types_filter=types)
    answer = await ask(list_groups.handle, node, request, 5)
    return [(group.group_id, group.group_state) for group in answer.groups]


async def test_groups_are_listed_by_state_and_type(tmp_path: Path) -> None:
    async with open_node(tmp_path, **AT_ONCE) as node:
        assert await states(node) == []
        await find(node)
        await sync(node, await join(node))
        assert await states(node) == [(GROUP, "Stable")]
        assert await states(node, "stable", "Empty") == [(GROUP, "Stable")]
        assert await states(node, "Empty") == []
        assert await states(node, types=("Classic",)) == [(GROUP, "Stable")]
        assert await states(node, types=("consumer",)) == []


@pytest.mark.parametrize("version", range(7))
async def test_a_group_is_described_at_every_version(tmp_path: Path, version: int) -> None:
    async with open_node(tmp_path, **AT_ONCE) as node:
        await find(node)
        joined = await join(node)
        await sync(node, joined)
        request = DescribeGroupsRequest(groups=[GROUP], include_authorized_operations=version >= 3)
        answer = await ask(describe_groups.handle, node, request, version)
        (group,) = answer.groups
        assert (group.group_state, group.protocol_type, group.protocol_data) == (
            "Stable",
            "consumer",
            "range",
        )
        (member,) = group.members
        assert (member.member_id, member.client_id, member.client_host) == (
            joined.member_id,
            "test",
            "/127.0.0.1",
        )
        assert (member.member_metadata, member.member_assignment) == (b"topics", b"all")
        if version >= 3:
            assert group.authorized_operations == ALL_BITS[ResourceType.GROUP]


@pytest.mark.parametrize("version", range(7))
async def test_trap_g13_an_unknown_group_is_dead_and_from_version_6_not_found(
    tmp_path: Path, version: int
) -> None:
    async with open_node(tmp_path, **AT_ONCE) as node:
        await find(node)
        request = DescribeGroupsRequest(groups=["nobody"])
        answer = await ask(describe_groups.handle, node, request, version)
        (group,) = answer.groups
        expected = ErrorCode.GROUP_ID_NOT_FOUND if version >= 6 else ErrorCode.NONE
        assert (group.group_state, group.error_code) == ("Dead", expected)


@pytest.mark.parametrize("version", range(3))
async def test_trap_g13_each_group_is_deleted_or_refused_by_itself(
    tmp_path: Path, version: int
) -> None:
    async with open_node(tmp_path, **AT_ONCE) as node:
        await find(node)
        await sync(node, await join(node))
        request = DeleteGroupsRequest(groups_names=[GROUP, "nobody", ""])
        answer = await ask(delete_groups.handle, node, request, version)
        assert {result.group_id: result.error_code for result in answer.results} == {
            GROUP: ErrorCode.NON_EMPTY_GROUP,
            "nobody": ErrorCode.GROUP_ID_NOT_FOUND,
            "": ErrorCode.INVALID_GROUP_ID,
        }


async def test_a_deleted_group_has_no_commits_after_a_restart(tmp_path: Path) -> None:
    async with open_node(tmp_path, **AT_ONCE) as node:
        await find(node)
        await create_topic(node)
        await commit(node, {0: 5})
        request = DeleteGroupsRequest(groups_names=[GROUP])
        answer = await ask(delete_groups.handle, node, request, 2)
        assert answer.results[0].error_code == ErrorCode.NONE
        assert await states(node) == []
    async with open_node(tmp_path, **AT_ONCE) as node:
        await node.coordinator.wait_loaded()
        assert await fetch(node, None) == {}
        assert await states(node) == []


async def test_single_offsets_are_deleted(tmp_path: Path) -> None:
    async with open_node(tmp_path, **AT_ONCE) as node:
        await find(node)
        await create_topic(node)
        await commit(node, {0: 5, 1: 6})
        request = OffsetDeleteRequest(
            group_id=GROUP,
            topics=[
                OffsetDeleteRequestTopic(
                    name="orders",
                    partitions=[
                        OffsetDeleteRequestPartition(partition_index=index) for index in (0, 9)
                    ],
                )
            ],
        )
        answer = await ask(offset_delete.handle, node, request, 0)
        codes = [p.error_code for topic in answer.topics for p in topic.partitions]
        assert codes == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        assert list(await fetch(node, None)) == [("orders", 1)]


async def test_offsets_of_an_unknown_group_are_not_found(tmp_path: Path) -> None:
    async with open_node(tmp_path, **AT_ONCE) as node:
        await find(node)
        request = OffsetDeleteRequest(group_id=GROUP, topics=[])
        answer = await ask(offset_delete.handle, node, request, 0)
        assert answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND


async def test_deleting_a_topic_deletes_its_commits(tmp_path: Path) -> None:
    async with open_node(tmp_path, **AT_ONCE) as node:
        await find(node)
        for name in ("orders", "bills"):
            await create_topic(node, name)
            await commit(node, {0: 5}, topic=name)
        request = DeleteTopicsRequest(topic_names=["orders"], timeout_ms=1000)
        await ask(delete_topics.handle, node, request, 3)
        await commit(node, {1: 6}, topic="bills")
        assert list(await fetch(node, None)) == [("bills", 0), ("bills", 1)]


_NAMES = [f"group-{number}" for number in range(5_000)]


@pytest.mark.parametrize(
    ("handler", "asked"),
    [
        (find_coordinator, FindCoordinatorRequest(coordinator_keys=_NAMES)),
        (describe_groups, DescribeGroupsRequest(groups=_NAMES)),
        (
            consumer_group_describe,
            ConsumerGroupDescribeRequest(group_ids=_NAMES, include_authorized_operations=False),
        ),
    ],
    ids=["FindCoordinator", "DescribeGroups", "ConsumerGroupDescribe"],
)
async def test_others_have_their_turn_while_thousands_of_groups_are_asked_about(
    tmp_path: Path,
    handler: Any,  # Any: a module with a handler of whichever request
    asked: Message,
) -> None:
    async with open_node(tmp_path, **AT_ONCE) as node:
        await find(node)
        async with counting_turns() as turns:
            await ask(handler.handle, node, asked, type(asked).last_version)
        assert turns.count >= 4
