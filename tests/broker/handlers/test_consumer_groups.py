"""The consumer protocol over the wire: its two APIs, and what others say of its groups."""

from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

import pytest

from tests.broker.handlers.asking import ask, wait
from tests.broker.handlers.group_clients import (
    AT_ONCE,
    GROUP,
    create_topic,
    find,
    join,
    join_request,
)
from tests.broker.nodes import context, open_node
from tidemark.broker.handlers import (
    api_versions,
    consumer_group_describe,
    consumer_group_heartbeat,
    describe_groups,
    join_group,
    leave_group,
    list_groups,
    offset_commit,
    offset_fetch,
)
from tidemark.broker.node import Node
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.messages.api_versions import ApiVersionsRequest
from tidemark.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from tidemark.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from tidemark.protocol.messages.consumer_group_heartbeat_response import (
    ConsumerGroupHeartbeatResponse,
)
from tidemark.protocol.messages.describe_groups import DescribeGroupsRequest
from tidemark.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from tidemark.protocol.messages.list_groups import ListGroupsRequest
from tidemark.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tidemark.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup


async def beat(
    node: Node,
    member_id: str = "m",
    epoch: int = 0,
    *,
    version: int = 1,
    topics: Sequence[str] | None = ("orders",),
    pattern: str | None = None,
) -> ConsumerGroupHeartbeatResponse:
    request = ConsumerGroupHeartbeatRequest(
        group_id=GROUP,
        member_id=member_id,
        member_epoch=epoch,
        rebalance_timeout_ms=10_000,
        subscribed_topic_names=topics,
        subscribed_topic_regex=pattern,
        topic_partitions=(),
    )
    return await ask(consumer_group_heartbeat.handle, node, request, version)


def assigned(answer: ConsumerGroupHeartbeatResponse) -> dict[UUID, list[int]]:
    assert answer.assignment is not None
    return {each.topic_id: list(each.partitions) for each in answer.assignment.topic_partitions}


@pytest.mark.parametrize("version", range(2))
async def test_a_member_joins_is_assigned_and_is_described(tmp_path: Path, version: int) -> None:
    async with open_node(tmp_path, **AT_ONCE) as node:
        await find(node)
        await create_topic(node)
        topic = node.topics.get("orders")
        assert topic is not None
        answer = await beat(node, "m" if version else "", version=version)
        assert (answer.error_code, answer.heartbeat_interval_ms) == (ErrorCode.NONE, 5_000)
        assert answer.member_id if not version else answer.member_id == "m"
        assert assigned(answer) == {topic.id: [0, 1]}

        asked = ConsumerGroupDescribeRequest(
            group_ids=[GROUP, "no", ""], include_authorized_operations=False
        )
        found, unknown, nameless = (
            await ask(consumer_group_describe.handle, node, asked, version)
        ).groups
        assert (found.group_state, found.assignor_name, found.group_epoch) == (
            "Stable",
            "uniform",
            1,
        )
        (member,) = found.members
        (has,), (is_to_have,) = (
            member.assignment.topic_partitions,
            member.target_assignment.topic_partitions,
        )
        assert has == is_to_have
        assert (has.topic_name, list(has.partitions)) == ("orders", [0, 1])
        assert member.member_type == (1 if version else -1)
        assert unknown.error_code == ErrorCode.GROUP_ID_NOT_FOUND
        assert nameless.error_code == ErrorCode.INVALID_GROUP_ID


async def test_a_member_without_an_id_is_refused_from_version_1_on(tmp_path: Path) -> None:
    async with open_node(tmp_path, **AT_ONCE) as node:
        await find(node)
        answer = await beat(node, "")
        assert answer.error_code == ErrorCode.INVALID_REQUEST
        assert "its client makes it up" in (answer.error_message or "")


async def test_topics_that_come_and_grow_are_assigned(tmp_path: Path) -> None:
    async with open_node(tmp_path, **AT_ONCE) as node:
        await find(node)
        first = await beat(node, topics=(), pattern="ord.*|__.*")
        assert assigned(first) == {}
        await create_topic(node)
        topic = node.topics.get("orders")
        assert topic is not None
        second = await beat(node, epoch=first.member_epoch, topics=None)
        assert assigned(second) == {topic.id: [0, 1]}, "and no internal topic"
        await node.topics.create_partitions(topic, 3)
        third = await beat(node, epoch=second.member_epoch, topics=None)
        assert assigned(third) == {topic.id: [0, 1, 2]}
        await node.topics.delete(topic)
        fourth = await beat(node, epoch=third.member_epoch, topics=None)
        assert assigned(fourth) == {}


async def test_groups_are_listed_by_kind_and_state(tmp_path: Path) -> None:
    async with open_node(tmp_path, **AT_ONCE) as node:
        await find(node)
        await create_topic(node)
        await beat(node)

        async def listed(states: list[str], types: list[str]) -> list[tuple[str, str]]:
            request = ListGroupsRequest(states_filter=states, types_filter=types)
            answer = await ask(list_groups.handle, node, request, 5)
            return [(group.group_id, group.group_type) for group in answer.groups]

        assert await listed([], []) == [(GROUP, "consumer")]
        assert await listed(["stable"], ["Consumer"]) == [(GROUP, "consumer")]
        assert await listed(["empty"], []) == []
        assert await listed([], ["classic"]) == []
        described = await ask(
            describe_groups.handle, node, DescribeGroupsRequest(groups=[GROUP]), 6
        )
        assert described.groups[0].error_code == ErrorCode.GROUP_ID_NOT_FOUND
        assert "consumer protocol" in (described.groups[0].error_message or "")


async def test_commits_and_their_readers_name_the_members_epoch(tmp_path: Path) -> None:
    async with open_node(tmp_path, **AT_ONCE) as node:
        await find(node)
        await create_topic(node)
        epoch = (await beat(node)).member_epoch

        async def commit(at_epoch: int, version: int) -> int:
            partition = OffsetCommitRequestPartition(
                partition_index=0, committed_offset=5, committed_metadata=""
            )
            request = OffsetCommitRequest(
                group_id=GROUP,
                generation_id_or_member_epoch=at_epoch,
                member_id="m",
                topics=[OffsetCommitRequestTopic(name="orders", partitions=[partition])],
            )
            answer = await ask(offset_commit.handle, node, request, version)
            return answer.topics[0].partitions[0].error_code

        assert await commit(epoch, 9) == ErrorCode.NONE
        assert await commit(epoch + 1, 9) == ErrorCode.STALE_MEMBER_EPOCH
        assert await commit(epoch, 8) == ErrorCode.UNSUPPORTED_VERSION

        async def read(member_id: str | None, at_epoch: int) -> int:
            group = OffsetFetchRequestGroup(
                group_id=GROUP, member_id=member_id, member_epoch=at_epoch, topics=None
            )
            answer = await ask(offset_fetch.handle, node, OffsetFetchRequest(groups=[group]), 9)
            return answer.groups[0].error_code

        assert await read("m", epoch) == ErrorCode.NONE
        assert await read(None, -1) == ErrorCode.NONE
        assert await read("m", epoch - 1) == ErrorCode.STALE_MEMBER_EPOCH
        assert await read("z", epoch) == ErrorCode.UNKNOWN_MEMBER_ID


async def test_the_feature_says_that_groups_can_be_assigned_here(tmp_path: Path) -> None:
    async with open_node(tmp_path, **AT_ONCE) as node:
        request = ApiVersionsRequest(client_software_name="a", client_software_version="1")
        for version in (3, 4):
            answer = await ask(api_versions.handle, node, request, version)
            levels = {each.name: each.max_version_level for each in answer.finalized_features}
            assert levels["group.version"] == 1
            supported = {each.name for each in answer.supported_features}
            assert ("group.version" in supported) == (version == 4), "trap A6: from 0 only there"


@pytest.mark.parametrize("version", [0, 2, 3, 5])
async def test_who_waits_to_have_left_is_told_when_the_group_is_another(
    tmp_path: Path, version: int
) -> None:
    """Its leaving is on its way to the log when a member of the other kind joins the group that it
    leaves empty: that one, and the coordinator, go on."""
    async with open_node(tmp_path, **AT_ONCE) as node:
        await find(node)
        await create_topic(node)
        await beat(node)
        leave = LeaveGroupRequest(
            group_id=GROUP, member_id="m", members=[MemberIdentity(member_id="m")]
        )
        with node.disk.others():  # not on the loop, which would have it written at once
            left = leave_group.handle(node, leave, context(version))
        assert not left.is_complete
        joined = join_group.handle(node, join_request(), context(9))
        assert (await wait(left)).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert (await wait(joined)).error_code == ErrorCode.MEMBER_ID_REQUIRED
        assert (await join(node)).error_code == ErrorCode.NONE


async def test_who_waits_to_have_left_is_told_when_the_coordinator_is_one_no_more(
    tmp_path: Path,
) -> None:
    async with open_node(tmp_path, **AT_ONCE) as node:
        await find(node)
        await create_topic(node)
        await beat(node)
        leave = LeaveGroupRequest(group_id=GROUP, member_id="m")
        with node.disk.others():
            left = leave_group.handle(node, leave, context(2))
        node.coordinator.resign()
        assert (await wait(left)).error_code == ErrorCode.NOT_COORDINATOR
