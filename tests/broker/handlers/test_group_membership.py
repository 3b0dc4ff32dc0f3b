"""Joining, syncing, beating and leaving at every version of the protocol."""

from pathlib import Path

import pytest

from tests.broker.handlers.asking import ask
from tests.broker.handlers.group_clients import (
    AT_ONCE,
    GROUP,
    beat,
    find,
    join,
    join_request,
    sync,
)
from tests.broker.nodes import open_node
from tidemark.broker.handlers import join_group, leave_group, sync_group
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from tidemark.protocol.messages.sync_group import SyncGroupRequest


@pytest.mark.parametrize("version", range(10))
async def test_a_lone_member_leads_its_group_at_every_version(tmp_path: Path, version: int) -> None:
    async with open_node(tmp_path, **AT_ONCE) as node:
        await find(node)
        joined = await join(node, version=version)
        assert joined.error_code == ErrorCode.NONE
        assert joined.generation_id == 1
        assert joined.leader == joined.member_id
        assert [(m.member_id, m.metadata) for m in joined.members] == [
            (joined.member_id, b"topics")
        ]


@pytest.mark.parametrize("version", range(4, 10))
async def test_trap_g1_the_first_join_gives_out_an_id_at_every_version_from_4(
    tmp_path: Path, version: int
) -> None:
    async with open_node(tmp_path, **AT_ONCE) as node:
        await find(node)
        answer = await ask(join_group.handle, node, join_request(), version)
        assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
        assert answer.member_id.startswith("test-")


@pytest.mark.parametrize("version", range(6))
async def test_the_assignment_comes_back_at_every_version(tmp_path: Path, version: int) -> None:
    async with open_node(tmp_path, **AT_ONCE) as node:
        await find(node)
        joined = await join(node)
        answer = await sync(node, joined, version=version)
        assert (answer.error_code, answer.assignment) == (ErrorCode.NONE, b"all")


async def test_trap_g6_version_5_must_name_the_protocol(tmp_path: Path) -> None:
    async with open_node(tmp_path, **AT_ONCE) as node:
        await find(node)
        joined = await join(node)
        request = SyncGroupRequest(
            group_id=GROUP,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            assignments=[],
        )
        answer = await ask(sync_group.handle, node, request, 5)
        assert answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize("version", range(5))
async def test_a_members_heartbeat_is_answered_at_every_version(
    tmp_path: Path, version: int
) -> None:
    async with open_node(tmp_path, **AT_ONCE) as node:
        await find(node)
        joined = await join(node)
        await sync(node, joined)
        assert await beat(node, joined, version=version) == ErrorCode.NONE


@pytest.mark.parametrize("version", range(6))
async def test_trap_g12_a_member_leaves_at_every_version(tmp_path: Path, version: int) -> None:
    async with open_node(tmp_path, **AT_ONCE) as node:
        await find(node)
        joined = await join(node)
        if version < 3:
            request = LeaveGroupRequest(group_id=GROUP, member_id=joined.member_id)
        else:
            members = [
                MemberIdentity(member_id=joined.member_id),
                MemberIdentity(member_id="nobody"),
            ]
            request = LeaveGroupRequest(group_id=GROUP, members=members)
        answer = await ask(leave_group.handle, node, request, version)
        assert answer.error_code == ErrorCode.NONE
        if version >= 3:
            codes = [member.error_code for member in answer.members]
            assert codes == [ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID]
        assert await beat(node, joined) == ErrorCode.UNKNOWN_MEMBER_ID


async def test_trap_g12_a_member_that_is_not_known_cannot_leave_before_version_3(
    tmp_path: Path,
) -> None:
    async with open_node(tmp_path, **AT_ONCE) as node:
        await find(node)
        request = LeaveGroupRequest(group_id=GROUP, member_id="nobody")
        answer = await ask(leave_group.handle, node, request, 2)
        assert answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID


async def test_who_did_not_look_for_the_coordinator_is_told_to(tmp_path: Path) -> None:
    async with open_node(tmp_path, **AT_ONCE) as node:
        with pytest.raises(RequestError) as caught:
            await join(node)
        assert caught.value.code is ErrorCode.NOT_COORDINATOR
