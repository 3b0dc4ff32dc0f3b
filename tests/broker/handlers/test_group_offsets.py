"""Committing offsets and getting them back, at every version of the protocol."""

from pathlib import Path

import pytest
import trio

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
    topic_id,
)
from tests.broker.nodes import open_node
from tidemark.broker.handlers import offset_commit, offset_fetch, txn_offset_commit
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tidemark.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from tidemark.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)


@pytest.mark.parametrize("version", range(2, 11))
async def test_a_commit_is_taken_at_every_version(tmp_path: Path, version: int) -> None:
    async with open_node(tmp_path, **AT_ONCE) as node:
        await find(node)
        await create_topic(node)
        assert await commit(node, {0: 5, 1: 6}, version=version) == {0: 0, 1: 0}
        found = await fetch(node, [0, 1])
        assert {key: p.committed_offset for key, p in found.items()} == {
            ("orders", 0): 5,
            ("orders", 1): 6,
        }


@pytest.mark.parametrize("version", range(1, 11))
async def test_trap_g8_a_missing_commit_is_minus_one_and_no_error(
    tmp_path: Path, version: int
) -> None:
    async with open_node(tmp_path, **AT_ONCE) as node:
        await find(node)
        await create_topic(node)
        await commit(node, {0: 5})
        found = await fetch(node, [0, 1], version=version)
        assert found["orders", 0].committed_offset == 5
        missing = found["orders", 1]
        assert (missing.committed_offset, missing.error_code) == (-1, ErrorCode.NONE)


@pytest.mark.parametrize("version", range(2, 11))
async def test_trap_g8_null_asks_for_every_commit_of_the_group(
    tmp_path: Path, version: int
) -> None:
    async with open_node(tmp_path, **AT_ONCE) as node:
        await find(node)
        for name in ("orders", "bills"):
            await create_topic(node, name)
            await commit(node, {1: 6, 0: 5}, topic=name)
        found = await fetch(node, None, version=version)
        assert list(found) == [("bills", 0), ("bills", 1), ("orders", 0), ("orders", 1)]


async def test_a_group_that_is_named_again_is_asked_about_other_topics(tmp_path: Path) -> None:
    async with open_node(tmp_path, **AT_ONCE) as node:
        await find(node)
        for name, offset in (("orders", 5), ("bills", 7)):
            await create_topic(node, name)
            await commit(node, {0: offset}, topic=name)
        groups = [
            OffsetFetchRequestGroup(
                group_id=GROUP,
                topics=[OffsetFetchRequestTopics(name=name, partition_indexes=[0])],
            )
            for name in ("orders", "bills")
        ]
        answer = await ask(offset_fetch.handle, node, OffsetFetchRequest(groups=groups), 9)
        found = [
            (each.group_id, topic.name, topic.partitions[0].committed_offset)
            for each in answer.groups
            for topic in each.topics
        ]
        assert found == [(GROUP, "orders", 5), (GROUP, "bills", 7)]


async def test_by_ids_a_topic_that_was_made_again_is_another_one(tmp_path: Path) -> None:
    async with open_node(tmp_path, **AT_ONCE) as node:
        await find(node)
        await create_topic(node)
        await commit(node, {0: 5}, version=10)
        old = node.topics.get("orders")
        assert old is not None
        await node.topics.delete(old)
        await create_topic(node)

        partition = OffsetCommitRequestPartition(
            partition_index=0, committed_offset=7, committed_metadata=""
        )
        topics = [OffsetCommitRequestTopic(topic_id=old.id, partitions=[partition])]
        request = OffsetCommitRequest(group_id=GROUP, member_id="", topics=topics)
        committed = (await ask(offset_commit.handle, node, request, 10)).topics[0]
        assert committed.topic_id == old.id
        assert committed.partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID

        both = [
            OffsetFetchRequestTopics(topic_id=each, partition_indexes=[0])
            for each in (old.id, topic_id(node, "orders"))
        ]
        group = OffsetFetchRequestGroup(group_id=GROUP, topics=both)
        answer = await ask(offset_fetch.handle, node, OffsetFetchRequest(groups=[group]), 10)
        outcomes = {
            topic.topic_id: (topic.partitions[0].committed_offset, topic.partitions[0].error_code)
            for topic in answer.groups[0].topics
        }
        assert outcomes == {
            old.id: (-1, ErrorCode.UNKNOWN_TOPIC_ID),
            topic_id(node, "orders"): (-1, ErrorCode.NONE),
        }


async def test_by_ids_a_partition_that_a_topic_has_not_is_unknown(tmp_path: Path) -> None:
    async with open_node(tmp_path, **AT_ONCE) as node:
        await find(node)
        await create_topic(node)
        assert await commit(node, {0: 5, 9: 5}, version=10) == {
            0: ErrorCode.NONE,
            9: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }


async def test_trap_g7_metadata_and_leader_epoch_come_back(tmp_path: Path) -> None:
    async with open_node(tmp_path, **AT_ONCE) as node:
        await find(node)
        await create_topic(node)
        await commit(node, {0: 5}, metadata="a note")
        found = (await fetch(node, [0]))["orders", 0]
        assert (found.metadata, found.committed_leader_epoch) == ("a note", 3)
        await commit(node, {0: 5}, metadata=None)
        assert (await fetch(node, [0]))["orders", 0].metadata == ""


async def test_a_partition_that_is_not_there_keeps_no_other_from_being_committed(
    tmp_path: Path,
) -> None:
    async with open_node(tmp_path, **AT_ONCE) as node:
        await find(node)
        await create_topic(node)
        codes = await commit(node, {0: 5, 9: 5})
        assert codes == {0: ErrorCode.NONE, 9: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        assert (await fetch(node, [0]))["orders", 0].committed_offset == 5


async def test_trap_g7_too_much_metadata_is_refused_by_partition(tmp_path: Path) -> None:
    async with open_node(tmp_path, **AT_ONCE) as node:
        await find(node)
        await create_topic(node)
        codes = await commit(node, {0: 5}, metadata="x" * 4097)
        assert codes == {0: ErrorCode.OFFSET_METADATA_TOO_LARGE}


async def test_a_commit_of_another_generation_is_refused_for_every_partition(
    tmp_path: Path,
) -> None:
    async with open_node(tmp_path, **AT_ONCE) as node:
        await find(node)
        await create_topic(node)
        member = await join(node)
        codes = await commit(node, {0: 5, 1: 6}, member=member)
        assert set(codes.values()) == {ErrorCode.REBALANCE_IN_PROGRESS}
        await sync(node, member)
        assert set((await commit(node, {0: 5, 1: 6}, member=member)).values()) == {0}


@pytest.mark.parametrize("version", [2, 9])
async def test_commits_before_the_coordinator_was_looked_for_are_sent_to_look(
    tmp_path: Path, version: int
) -> None:
    async with open_node(tmp_path, **AT_ONCE) as node:
        await create_topic(node)
        assert await commit(node, {0: 5}, version=version) == {0: ErrorCode.NOT_COORDINATOR}


async def test_the_oldest_fetch_has_an_error_for_each_partition(tmp_path: Path) -> None:
    async with open_node(tmp_path, **AT_ONCE) as node:
        found = await fetch(node, [0], version=1)
        assert found["orders", 0].error_code == ErrorCode.NOT_COORDINATOR
        assert await fetch(node, [0], version=2) == {}


@pytest.mark.parametrize("version", range(6))
async def test_whose_transaction_it_is_is_not_asked_about_partitions_that_are_not_there(
    tmp_path: Path, version: int
) -> None:
    request = TxnOffsetCommitRequest(
        transactional_id="nobody",
        group_id=GROUP,
        producer_id=1,
        producer_epoch=0,
        topics=[
            TxnOffsetCommitRequestTopic(
                name="missing",
                partitions=[
                    TxnOffsetCommitRequestPartition(
                        partition_index=0, committed_offset=1, committed_metadata=""
                    )
                ],
            )
        ],
    )
    async with open_node(tmp_path, **AT_ONCE) as node:
        await find(node)
        with trio.fail_after(2):  # a coordinator is looked for for five seconds
            answer = await ask(txn_offset_commit.handle, node, request, version)
    (topic,) = answer.topics
    assert [each.error_code for each in topic.partitions] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
