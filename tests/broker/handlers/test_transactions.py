"""Transactions as a partition's readers see them: markers, the last stable offset, what is aborted.

The batches are a coordinator's own here, so nobody has to be asked about them.
"""

from pathlib import Path

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from tests.broker.handlers.asking import wait
from tests.broker.handlers.fetching import Want, asking, begin_fetch, fetch
from tests.broker.handlers.fetching import read as bytes_of
from tests.broker.handlers.looking_up import offset
from tests.broker.handlers.marking import end, write
from tests.broker.handlers.producing import batch, new_topic, produce, request
from tests.broker.handlers.turns import counting_turns
from tests.broker.held_disk import HeldDisk
from tests.broker.nodes import open_node
from tidemark.broker.metadata.topic import NewTopic
from tidemark.broker.network.requests import Pending
from tidemark.broker.node import Node
from tidemark.broker.node_figures import NodeFigures
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.fetch import AbortedTransaction, PartitionData
from tidemark.protocol.records.control import Marker, read_marker
from tidemark.protocol.records.header import iter_headers
from tidemark.protocol.types import Offset

COMMITTED = 1


async def read(node: Node, at: int = 0) -> PartitionData:
    (found,) = await fetch(node, Want(offset=at), isolation_level=COMMITTED)
    return found


def offsets_in(found: PartitionData) -> list[int]:
    return [header.base_offset for _, header in iter_headers(bytes_of(found))]


async def test_readers_of_committed_transactions_stop_where_one_is_open(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        replica = await new_topic(node)
        await produce(node, request(batch()))
        await write(replica, 7)
        await produce(node, request(batch()))
        found = await read(node)
        assert offsets_in(found) == [0]
        assert (found.last_stable_offset, found.high_watermark) == (1, 3)
        (all_of_it,) = await fetch(node, Want())
        assert offsets_in(all_of_it) == [0, 1, 2]
        assert all_of_it.aborted_transactions is None
        assert (await offset(node, -1, isolation=COMMITTED)).offset == 1
        assert (await offset(node, -1)).offset == 3

        assert await end(node, 7, commit=True) == [ErrorCode.NONE]
        found = await read(node)
        assert offsets_in(found) == [0, 1, 2, 3]
        assert found.aborted_transactions == ()
        assert (await offset(node, -1, isolation=COMMITTED)).offset == 4


async def test_readers_are_told_what_was_aborted_where_they_read(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        replica = await new_topic(node)
        await write(replica, 7)
        await write(replica, 8)
        await end(node, 7, commit=False)
        await write(replica, 7)
        await end(node, 8, commit=True)
        await end(node, 7, commit=False)
        first, second = (
            AbortedTransaction(producer_id=7, first_offset=0),
            AbortedTransaction(producer_id=7, first_offset=3),
        )
        assert (await read(node)).aborted_transactions == (first, second)
        assert (await read(node, at=2)).aborted_transactions == (first, second)
        assert (await read(node, at=3)).aborted_transactions == (second,)
        assert (await read(node, at=6)).aborted_transactions == ()


async def test_a_marker_says_what_the_coordinator_said(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        replica = await new_topic(node)
        await write(replica, 7)
        await end(node, 7, commit=False, epoch=1, coordinator_epoch=5, bumps=True)
        (found,) = await fetch(node, Want(offset=1))
        data = bytes_of(found)
        ((_, header),) = iter_headers(data)
        assert header.is_control
        assert header.is_transactional
        assert (header.producer_id, header.producer_epoch) == (7, 1)
        assert read_marker(data, header) == Marker(is_commit=False, coordinator_epoch=5)


async def test_a_fetch_that_waits_is_answered_when_the_transaction_is_decided(
    tmp_path: Path,
) -> None:
    async with open_node(tmp_path) as node:
        replica = await new_topic(node)
        await write(replica, 7)
        waiting = begin_fetch(node, asking(Want(), max_wait_ms=30_000, isolation_level=COMMITTED))
        assert isinstance(waiting, Pending)
        await produce(node, request(batch()))
        await wait_all_tasks_blocked()
        assert not waiting.is_complete
        with trio.fail_after(20):
            await end(node, 7, commit=True)
            answer = await wait(waiting)
        assert offsets_in(answer.responses[0].partitions[0]) == [0, 1, 2]


async def test_each_partition_says_what_became_of_its_marker(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        replica = await new_topic(node)
        await write(replica, 7)
        assert await end(node, 7, commit=True, coordinator_epoch=4, partitions=(0, 1)) == [
            ErrorCode.NONE,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ]
        await write(replica, 7, epoch=1)
        assert await end(node, 7, commit=True, epoch=1, coordinator_epoch=3) == [
            ErrorCode.TRANSACTION_COORDINATOR_FENCED
        ]
        assert await end(node, 7, commit=True, coordinator_epoch=4) == [
            ErrorCode.INVALID_PRODUCER_EPOCH
        ]
        assert replica.last_stable_offset == 2


@pytest.mark.parametrize(
    ("producer", "epoch", "code"),
    [
        (-1, 0, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        (-7, 0, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        (7, -1, ErrorCode.INVALID_PRODUCER_EPOCH),
    ],
)
async def test_a_marker_of_a_producer_that_cannot_be_is_refused(
    tmp_path: Path, producer: int, epoch: int, code: ErrorCode
) -> None:
    async with open_node(tmp_path) as node:
        replica = await new_topic(node)
        assert await end(node, producer, commit=True, epoch=epoch) == [code]
        assert replica.log.end_offset == 0


async def test_a_marker_that_comes_again_is_answered_and_not_written_again(
    tmp_path: Path,
) -> None:
    async with open_node(tmp_path) as node:
        replica = await new_topic(node)
        await write(replica, 7)
        assert await end(node, 7, commit=True) == [ErrorCode.NONE]
        log_end = replica.log_end
        assert await end(node, 7, commit=True) == [ErrorCode.NONE]
        assert replica.log_end == log_end


async def test_what_is_open_and_aborted_is_known_after_a_restart(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        replica = await new_topic(node)
        await write(replica, 7)
        await end(node, 7, commit=False)
        await write(replica, 8)
    async with open_node(tmp_path) as node:
        found = await read(node)
        assert found.aborted_transactions == (AbortedTransaction(producer_id=7, first_offset=0),)
        assert (found.last_stable_offset, found.high_watermark) == (2, 3)
        await end(node, 8, commit=True)
        assert (await read(node)).last_stable_offset == 4


async def test_a_start_that_moved_into_an_open_transaction_does_not_hide_the_partition(
    tmp_path: Path,
) -> None:
    async with open_node(tmp_path) as node:
        replica = await new_topic(node)
        await write(replica, 7)
        await produce(node, request(batch()))
        await replica.delete_records(Offset(1))
        found = await read(node, at=1)
        assert (found.last_stable_offset, found.log_start_offset) == (1, 1)
        assert offsets_in(found) == []
        await end(node, 7, commit=False)
        assert offsets_in(await read(node, at=1)) == [1, 2]


async def test_times_are_looked_up_among_what_is_decided(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        replica = await new_topic(node)
        await write(replica, 7)
        assert (await offset(node, 0)).offset == 0
        assert (await offset(node, 0, isolation=COMMITTED)).offset == -1
        assert (await offset(node, -3, isolation=COMMITTED)).offset == -1
        await end(node, 7, commit=True)
        assert (await offset(node, 0, isolation=COMMITTED)).offset == 0


async def test_what_is_open_and_aborted_is_counted_where_there_is_any(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        replica = await new_topic(node)
        figures = NodeFigures(node, "")
        assert figures.partitions()[0].transactions is None
        await write(replica, 7)
        await write(replica, 8)
        await end(node, 7, commit=False)
        shown = figures.partitions()[0].transactions
        assert shown is not None
        assert (shown.open, shown.aborted) == (1, 1)
        assert shown.oldest_seconds is not None
        assert 0 <= shown.oldest_seconds < 30


async def test_a_coordinator_writes_for_no_producer_that_is_fenced(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        replica = await new_topic(node)
        await end(node, 7, commit=False, epoch=3)
        with pytest.raises(RequestError, match="INVALID_PRODUCER_EPOCH"):
            await write(replica, 7, epoch=2)


async def test_a_marker_is_answered_once_it_is_committed(tmp_path: Path, disk: HeldDisk) -> None:
    async with open_node(tmp_path) as node:
        replica = await new_topic(node)
        await write(replica, 7)
        disk.hold()
        async with trio.open_nursery() as tasks:
            answered = trio.Event()

            async def ask_it() -> None:
                assert await end(node, 7, commit=True) == [ErrorCode.NONE]
                answered.set()

            tasks.start_soon(ask_it)
            await wait_all_tasks_blocked(0.05)
            assert not answered.is_set()
            assert replica.last_stable_offset == 0
            disk.release()
        assert replica.last_stable_offset == 2


async def test_a_marker_waits_while_writes_are_held_and_others_do_not_wait_for_it(
    tmp_path: Path,
) -> None:
    async with open_node(tmp_path) as node:
        topic = await node.topics.create(NewTopic(name="t", partitions=2))
        held, flowing = topic.replicas[0], topic.replicas[1]
        for replica in (held, flowing):
            await write(replica, 7)
        held.member.pause_writes()
        async with trio.open_nursery() as tasks:

            async def ask_it() -> None:
                outcomes = await end(node, 7, commit=True, partitions=(0, 1))
                assert outcomes == [ErrorCode.NONE, ErrorCode.NONE]

            tasks.start_soon(ask_it)
            await wait_all_tasks_blocked(0.05)
            assert (held.last_stable_offset, flowing.last_stable_offset) == (0, 2)
            held.member.resume_writes()
            held.line.release()
        assert held.last_stable_offset == 2


async def test_others_have_their_turn_while_many_markers_are_written(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        await new_topic(node)
        async with counting_turns() as turns:
            outcomes = await end(node, 1, commit=True, partitions=tuple(range(2_000)))
        assert outcomes == [ErrorCode.NONE] + [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 1_999
        assert turns.count >= 20
