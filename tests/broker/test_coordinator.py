"""The coordinator's shell: reading groups back, time, failures, and the end."""

from functools import partial
from pathlib import Path

import pytest
import trio

from tests.broker.handlers.asking import wait
from tests.broker.handlers.group_clients import (
    AT_ONCE,
    GROUP,
    beat,
    commit,
    create_topic,
    fetch,
    find,
    join,
    join_request,
    sync,
)
from tests.broker.handlers.marking import end
from tests.broker.nodes import context, open_node
from tidemark.broker.handlers import join_group
from tidemark.broker.node import Node
from tidemark.partitions.state_machines.groups.placement import java_hash, partition_of
from tidemark.partitions.state_machines.groups.requests import GroupState
from tidemark.partitions.state_machines.topic_names import CONSUMER_OFFSETS
from tidemark.partitions.storage.log import Log
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.records.records import Record, encode_batch
from tidemark.protocol.types import TopicPartition


@pytest.mark.parametrize(
    ("group_id", "hashed"),
    [
        ("", 0),
        ("a", 97),
        ("hello", 99162322),
        ("polygenelubricants", -(2**31)),
        ("über", 7604755),
        ("🌊", 1773134),
    ],
)
def test_groups_are_hashed_as_java_does(group_id: str, hashed: int) -> None:
    assert java_hash(group_id) == hashed


def test_every_group_has_a_partition() -> None:
    assert partition_of("polygenelubricants", 50) == 0
    assert all(0 <= partition_of(f"group {number}", 50) < 50 for number in range(200))


async def test_commits_and_members_survive_a_restart(tmp_path: Path) -> None:
    async with open_node(tmp_path, **AT_ONCE) as node:
        await find(node)
        await create_topic(node)
        member = await join(node)
        await sync(node, member)
        await commit(node, {0: 5}, member=member)
        await commit(node, {0: 7}, member=member)
    async with open_node(tmp_path, **AT_ONCE) as node:
        await node.coordinator.wait_loaded()
        assert (await fetch(node, [0]))["orders", 0].committed_offset == 7
        assert await beat(node, member) == ErrorCode.NONE
        assert (await sync(node, member)).assignment == b"all"


async def test_groups_are_not_answered_before_they_are_read_back(tmp_path: Path) -> None:
    async with open_node(tmp_path, **AT_ONCE) as node:
        await find(node)
        await create_topic(node)
        await commit(node, {0: 5})
    async with open_node(tmp_path, **AT_ONCE) as node:
        loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        with pytest.raises(RequestError) as caught:
            node.coordinator.list_groups()
        assert caught.value.code is loading
        assert await commit(node, {0: 6}) == {0: loading}
        node.coordinator.find(GROUP)
        await node.coordinator.wait_loaded()
        assert (await fetch(node, [0]))["orders", 0].committed_offset == 5


async def test_members_of_a_group_that_is_being_read_are_not_told_so(tmp_path: Path) -> None:
    """Clients take that answer from neither request: kafka-python's heartbeats end with it."""
    async with open_node(tmp_path, **AT_ONCE) as node:
        await find(node)
        await create_topic(node)
        member = await join(node)
        await sync(node, member)
    async with open_node(tmp_path, **AT_ONCE) as node:
        assert node.coordinator.is_being_read(GROUP)
        assert await beat(node, member) == ErrorCode.NONE
        assert (await sync(node, member)).error_code == ErrorCode.REBALANCE_IN_PROGRESS
        await node.coordinator.wait_loaded()
        assert await beat(node, member) == ErrorCode.NONE
        assert (await sync(node, member)).assignment == b"all"


async def test_no_marker_is_written_among_groups_that_are_still_being_read(tmp_path: Path) -> None:
    """Who reads them back would not hear of it: the offsets it ends would stay undecided."""
    async with open_node(tmp_path, **AT_ONCE) as node:
        await find(node)
        await create_topic(node)
        await commit(node, {0: 5})
        place = node.coordinator.partition_of(GROUP)
        assert place is not None
    async with open_node(tmp_path, **AT_ONCE) as node:
        ended = partial(end, node, 7, commit=True, topic=place.topic, partitions=(place.partition,))
        assert await ended() == [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
        await node.coordinator.wait_loaded()
        assert await ended() == [ErrorCode.NONE]


async def append_to_log(node: Node, record: Record) -> None:
    topic = node.topics.get(CONSUMER_OFFSETS)
    assert topic is not None
    replica = topic.replicas[partition_of(GROUP, topic.partition_count)]
    await replica.wait_committed(replica.append_own(encode_batch([record])).end_offset)


async def test_a_log_with_a_record_that_cannot_be_read_is_not_served(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Serving the rest would forget commits, and consumers would start over."""
    async with open_node(tmp_path, **AT_ONCE) as node:
        await find(node)
        await append_to_log(
            node, Record(key=b"\0\1" + b"\0\5group" + b"\0\1t" + b"\0\0\0\0", value=b"\0")
        )
    async with open_node(tmp_path, **AT_ONCE) as node:
        await node.coordinator.wait_loaded()
        with pytest.raises(RequestError) as caught:
            node.coordinator.find(GROUP)
        assert caught.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert "cannot be read" in caplog.text


async def test_records_of_newer_kinds_of_groups_are_passed_over(tmp_path: Path) -> None:
    async with open_node(tmp_path, **AT_ONCE) as node:
        await find(node)
        await append_to_log(node, Record(key=b"\0\3" + b"\0\5group", value=b"anything"))
        await append_to_log(node, Record(key=None, value=b"no key"))
    async with open_node(tmp_path, **AT_ONCE) as node:
        await node.coordinator.wait_loaded()
        assert node.coordinator.list_groups() == []


async def test_a_silent_member_is_taken_out_when_its_session_ends(tmp_path: Path) -> None:
    async with open_node(tmp_path, **AT_ONCE) as node:
        await find(node)
        member = await join(node, session_ms=100)
        await sync(node, member)
        assert state(node) is GroupState.STABLE
        await trio.sleep(0.2)
        assert state(node) is GroupState.EMPTY
        assert await beat(node, member) == ErrorCode.UNKNOWN_MEMBER_ID


def state(node: Node) -> GroupState:
    description = node.coordinator.describe(GROUP)
    assert description is not None
    return description.state


async def test_whoever_waits_is_sent_away_when_the_broker_stops(tmp_path: Path) -> None:
    settings = AT_ONCE | {"group_initial_rebalance_delay_ms": 60_000}
    async with open_node(tmp_path, **settings) as node:
        await find(node)
        pending = join_group.handle(node, join_request(), context(3))
        assert not pending.is_complete
        node.coordinator.resign()
        answer = await wait(pending)
        assert answer.error_code == ErrorCode.NOT_COORDINATOR
        with pytest.raises(RequestError) as caught:
            await join(node)
        assert caught.value.code is ErrorCode.NOT_COORDINATOR


async def test_a_commit_that_the_disk_refuses_is_answered_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_node(tmp_path, **AT_ONCE) as node:
        await find(node)
        await create_topic(node)
        await commit(node, {0: 5})

        def refuse(log: Log, data: bytes) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(Log, "append", refuse)
        assert await commit(node, {0: 6}) == {0: ErrorCode.NOT_COORDINATOR}
        monkeypatch.undo()
        assert (await fetch(node, [0]))["orders", 0].committed_offset == 5
        assert await commit(node, {0: 7}) == {0: ErrorCode.NONE}


async def test_a_scrape_sees_members_and_commits(tmp_path: Path) -> None:
    async with open_node(tmp_path, **AT_ONCE) as node:
        await find(node)
        await create_topic(node)
        await sync(node, member := await join(node))
        await commit(node, {0: 5}, member=member)
        (figures,) = await trio.to_thread.run_sync(node.coordinator.figures)
        assert (figures.group, figures.members) == (GROUP, 1)
        assert list(figures.committed) == [(TopicPartition("orders", 0), 5)]


async def test_many_commits_at_once_are_all_answered(tmp_path: Path) -> None:
    async with open_node(tmp_path, **AT_ONCE) as node:
        await find(node)
        await create_topic(node)
        codes: list[dict[int, int]] = []

        async def commit_one(offset: int) -> None:
            codes.append(await commit(node, {0: offset}))

        async with trio.open_nursery() as nursery:
            for offset in range(50):
                nursery.start_soon(commit_one, offset)
        assert codes == [{0: ErrorCode.NONE}] * 50


async def test_commits_wait_while_the_lead_is_about_to_go_and_keep_their_order(
    tmp_path: Path,
) -> None:
    async with open_node(tmp_path, **AT_ONCE) as node:
        await find(node)
        await create_topic(node)
        await commit(node, {0: 1})
        replica = node.topics.replica(
            CONSUMER_OFFSETS, partition_of(GROUP, node.settings.offsets_topic_num_partitions)
        )
        assert replica is not None
        codes: list[dict[int, int]] = []

        async def commit_one(offset: int) -> None:
            codes.append(await commit(node, {0: offset}))

        async with trio.open_nursery() as nursery:
            replica.member.pause_writes()
            for offset in (2, 3):
                nursery.start_soon(commit_one, offset)
                await trio.sleep(0.01)
            assert codes == []
            replica.member.resume_writes()
            replica._services.driver.touch()
        assert codes == [{0: ErrorCode.NONE}] * 2
        assert (await fetch(node, [0]))["orders", 0].committed_offset == 3


async def test_commits_do_not_wait_for_ever(tmp_path: Path) -> None:
    async with open_node(tmp_path, **AT_ONCE, leader_move_pause_max_ms=20) as node:
        await find(node)
        await create_topic(node)
        replica = node.topics.replica(
            CONSUMER_OFFSETS, partition_of(GROUP, node.settings.offsets_topic_num_partitions)
        )
        assert replica is not None
        replica.member.pause_writes()
        with trio.fail_after(20):
            assert await commit(node, {0: 2}) == {0: ErrorCode.NOT_COORDINATOR}
        replica.member.resume_writes()
        replica._services.driver.touch()
        assert await commit(node, {0: 3}) == {0: ErrorCode.NONE}
