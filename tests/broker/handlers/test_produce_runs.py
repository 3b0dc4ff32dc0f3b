"""Produce requests that come together, are alike, and are appended in one write."""

import errno
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import trio

from tests.broker.handlers.produce_bursts import Connect, Given, appends, idempotent, responses
from tests.broker.handlers.produce_connection import VERSION, connect, values
from tests.broker.handlers.producing import batch, new_topic, now_ms, request
from tests.broker.held_disk import HeldDisk
from tests.broker.nodes import open_node
from tidemark.broker.handlers.produce_work import RUN_BYTES_MAX
from tidemark.broker.metadata.topic import NewTopic
from tidemark.broker.network.calls import Call
from tidemark.broker.replicas.replica_commits import CommittingReplica
from tidemark.partitions.replication.opening import JOURNALED_BYTES_MAX
from tidemark.partitions.storage.os_files import OsFile
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.messages.produce import PartitionProduceResponse
from tidemark.protocol.records.records import Record, encode_batch
from tidemark.protocol.types import BytesLike, Offset

__all__ = ["appends", "connect"]


def sizes(given: Given) -> list[int]:
    return [count for count, _ in given]


def numbered(given: Given, version: int = VERSION) -> list[tuple[int, PartitionProduceResponse]]:
    """What each request was answered for its one partition."""
    return [
        (number, response.responses[0].partition_responses[0])
        for number, response in responses(given, version)
    ]


def answers(given: Given) -> list[tuple[int, int]]:
    """The errors and offsets, in the order of the requests."""
    found = numbered(given)
    numbers = [number for number, _ in found]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    return [(answer.error_code, answer.base_offset) for _, answer in found]


def batch_of(timestamp_ms: int) -> bytes:
    return encode_batch([Record(timestamp_ms=timestamp_ms, key=None, value=b"value")])


@pytest.mark.parametrize("acks", [1, -1])
@pytest.mark.parametrize("version", [7, 9, 12])
async def test_a_burst_is_one_write_and_each_request_has_its_own_answer(
    tmp_path: Path, connect: Connect, appends: list[int], version: int, acks: int
) -> None:
    async with open_node(tmp_path) as node:
        replica, client = await new_topic(node, flush="os"), connect(node)
        client.answer(request(batch(b"first"), acks=acks), version)
        appends.clear()
        burst = [batch(b"a"), batch(b"b", b"c"), batch(b"d")]
        given = client.ask_all([request(each, acks=acks) for each in burst], version)
        assert numbered(given, version) == [
            (2 + at, PartitionProduceResponse(index=0, base_offset=offset, log_start_offset=0))
            for at, offset in enumerate((1, 2, 4))
        ]
        assert (sizes(given), appends) == ([3], [3])
        assert values(replica) == [b"first", b"a", b"b", b"c", b"d"]
        assert replica.high_watermark == 5
        assert node.metrics.api(0).requests.value == 4
        assert sum(node.metrics.api(0).latency.counts) == 4
        assert len(client.decoded) == 1


async def test_what_is_refused_is_refused_alone_and_its_neighbours_are_not(
    tmp_path: Path, connect: Connect
) -> None:
    broken = bytearray(batch(b"broken"))
    broken[-1] ^= 1
    async with open_node(tmp_path) as node:
        replica, client = await new_topic(node, flush="os"), connect(node)
        client.answer(request(batch(b"first")))
        burst = [batch(b"a"), batch(b"b"), bytes(broken), batch(b"c"), batch(b"d")]
        given = client.ask_all([request(each) for each in burst])
        corrupt = (ErrorCode.CORRUPT_MESSAGE, -1)
        assert answers(given) == [(0, 1), (0, 2), corrupt, (0, 3), (0, 4)]
        assert sizes(given) == [2, 1, 2]
        assert values(replica) == [b"first", b"a", b"b", b"c", b"d"]


async def test_a_batch_that_is_sent_twice_in_one_burst_is_stored_once(
    tmp_path: Path, connect: Connect
) -> None:
    async with open_node(tmp_path) as node:
        replica, client = await new_topic(node, flush="os"), connect(node)
        client.answer(request(idempotent(0)))
        burst = [idempotent(sequence) for sequence in (1, 2, 2, 3, 1)]
        given = client.ask_all([request(each) for each in burst])
        assert answers(given) == [(0, 1), (0, 2), (0, 2), (0, 3), (0, 1)]
        assert values(replica) == [b"0", b"1", b"2", b"3"]


async def test_a_gap_in_a_burst_is_out_of_order_and_what_is_due_is_taken(
    tmp_path: Path, connect: Connect
) -> None:
    async with open_node(tmp_path) as node:
        replica, client = await new_topic(node, flush="os"), connect(node)
        client.answer(request(idempotent(0)))
        given = client.ask_all([request(idempotent(sequence)) for sequence in (1, 3, 2)])
        gap = (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
        assert answers(given) == [(0, 1), gap, (0, 2)]
        assert values(replica) == [b"0", b"1", b"2"]


async def test_producers_that_share_a_connection_are_told_apart(
    tmp_path: Path, connect: Connect
) -> None:
    async with open_node(tmp_path) as node:
        replica, client = await new_topic(node, flush="os"), connect(node)
        for producer_id in (7, 8):
            client.answer(request(idempotent(0, producer_id=producer_id)))
        burst = [(7, 1), (7, 2), (8, 1), (7, 3), (7, 3)]
        given = client.ask_all(
            [request(idempotent(sequence, producer_id=of)) for of, sequence in burst]
        )
        assert answers(given) == [(0, 2), (0, 3), (0, 4), (0, 5), (0, 5)]
        assert replica.log_end == 6


async def test_after_a_burst_the_last_five_are_known_again(
    tmp_path: Path, connect: Connect
) -> None:
    async with open_node(tmp_path) as node:
        _, client = await new_topic(node, flush="os"), connect(node)
        client.answer(request(idempotent(0)))
        assert sizes(client.ask_all([request(idempotent(n)) for n in range(1, 8)])) == [7]
        again = answers(client.ask_all([request(idempotent(n)) for n in range(1, 8)]))
        too_old = (ErrorCode.DUPLICATE_SEQUENCE_NUMBER, -1)
        assert again == [too_old, too_old, *((0, n) for n in range(3, 8))]


async def test_a_write_that_fails_refuses_what_was_in_it_and_nothing_else(
    tmp_path: Path, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    def half_of_it(file: OsFile, parts: Sequence[BytesLike], position: int) -> None:
        file.pwrite(bytes(b"".join(parts))[:100], position)
        raise OSError(errno.ENOSPC, "no room")

    async with open_node(tmp_path) as node:
        replica, client = await new_topic(node, flush="os"), connect(node)
        client.answer(request(idempotent(0)))
        with monkeypatch.context() as patch:
            patch.setattr(OsFile, "pwritev", half_of_it)
            given = client.ask_all([request(idempotent(n)) for n in (1, 2, 3)])
        full = (ErrorCode.KAFKA_STORAGE_ERROR, -1)
        assert (sizes(given), answers(given)) == ([3], [full, full, full])
        assert (replica.log_end, replica.high_watermark) == (1, 1)
        # Who follows them is not out of order, and they are fresh when they come again.
        assert answers(client.ask_all([request(idempotent(4))])) == [full]
        again = client.ask_all([request(idempotent(n)) for n in (1, 2, 3, 4)])
        assert answers(again) == [(0, 1), (0, 2), (0, 3), (0, 4)]
        assert values(replica) == [b"0", b"1", b"2", b"3", b"4"]


async def test_partitions_that_take_turns_keep_the_order_of_their_requests(
    tmp_path: Path, connect: Connect, appends: list[int]
) -> None:
    async with open_node(tmp_path) as node:
        topic = await node.topics.create(NewTopic(name="t", partitions=2, configs={"flush": "os"}))
        client = connect(node)
        client.answer(request(batch(b"first")))
        asked = [
            request(batch(b"%d" % number), partition=partition)
            for number, partition in enumerate((0, 0, 1, 1, 0))
        ]
        given = client.ask_all(asked)
        assert (sizes(given), appends) == ([5], [1, 2, 2])
        assert answers(given) == [(0, 1), (0, 2), (0, 0), (0, 1), (0, 3)]
        assert values(topic.replicas[0]) == [b"first", b"0", b"1", b"4"]
        assert values(topic.replicas[1]) == [b"2", b"3"]


async def test_what_has_to_be_waited_for_holds_up_nothing_that_came_before_it(
    tmp_path: Path, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = HeldDisk(monkeypatch)
    async with open_node(tmp_path) as node:
        quick, client = await new_topic(node, flush="os"), connect(node)
        slow = await node.topics.create(NewTopic(name="slow", partitions=1))
        for topic in ("t", "slow"):
            client.ask(request(batch(b"first"), topic=topic))
        with trio.fail_after(20):
            await slow.replicas[0].wait_committed(Offset(1))
        disk.hold()
        given = client.ask_all(
            [request(batch(b"%d" % n), topic=topic) for n, topic in enumerate(("t", "slow", "t"))]
        )
        assert sizes(given) == [1, 1, 1]
        assert [isinstance(answer, Call) for _, answer in given] == [False, True, False]
        disk.release()
        with trio.fail_after(20):
            await slow.replicas[0].wait_committed(Offset(2))
        assert values(quick) == [b"first", b"0", b"2"]


@pytest.mark.parametrize("acks", [1, -1])
async def test_where_more_replicas_are_wanted_a_burst_to_several_partitions_is_refused(
    tmp_path: Path, connect: Connect, monkeypatch: pytest.MonkeyPatch, acks: int
) -> None:
    # As if there were as many voters as are wanted, and only one of them could be heard from.
    as_asked = property(lambda replica: replica.config.min_insync_replicas)
    monkeypatch.setattr(CommittingReplica, "_wanted", as_asked)
    async with open_node(tmp_path) as node:
        configs = {"flush": "os"}
        topic = await node.topics.create(NewTopic(name="t", partitions=2, configs=configs))
        client = connect(node)
        client.answer(request(batch(b"first"), acks=acks))
        topic.replicas[1].apply_config(replace(topic.config, min_insync_replicas=2))
        asked = [request(batch(b"a"), partition=number, acks=acks) for number in (0, 1)]
        error = 0 if acks == 1 else ErrorCode.NOT_ENOUGH_REPLICAS
        found = answers(client.ask_all(asked))
        assert found == [(0, 1), (error, -1 if error else 0)]


async def test_a_burst_waits_for_its_commit_and_is_answered_at_once(
    tmp_path: Path, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = HeldDisk(monkeypatch)
    async with open_node(tmp_path) as node:
        replica, client = await new_topic(node), connect(node)
        client.ask(request(batch(b"a")))
        with trio.fail_after(20):
            await replica.wait_committed(Offset(1))
        disk.hold()
        ((count, call),) = client.ask_all([request(batch(b"%d" % n)) for n in range(4)])
        assert isinstance(call, Call)
        assert (count, call.count, call.is_settled) == (4, 4, False)
        assert (replica.high_watermark, replica.log_end) == (1, 5)
        disk.release()
        assert answers([(count, call)]) == [(0, 1), (0, 2), (0, 3), (0, 4)]


async def test_a_burst_whose_time_is_over_is_told_so(
    tmp_path: Path, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = HeldDisk(monkeypatch)
    async with open_node(tmp_path) as node:
        _, client = await new_topic(node), connect(node)
        client.ask(request(batch(), timeout_ms=1))
        await trio.sleep(0.05)
        disk.hold()
        ((count, call),) = client.ask_all([request(batch(), timeout_ms=1) for _ in range(2)])
        assert isinstance(call, Call)
        settled = trio.Event()
        call.when_settled = settled.set
        with trio.fail_after(20):
            await settled.wait()
        assert answers([(count, call)]) == [(ErrorCode.REQUEST_TIMED_OUT, -1)] * 2
        disk.release()


async def test_a_burst_whose_leader_goes_is_refused_though_another_may_commit_it(
    tmp_path: Path, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = HeldDisk(monkeypatch)
    async with open_node(tmp_path) as node:
        replica, client = await new_topic(node), connect(node)
        client.ask(request(batch()))
        disk.hold()
        given = client.ask_all([request(batch()) for _ in range(2)])
        replica.close()
        assert answers(given) == [(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)] * 2
        disk.release()


async def test_a_burst_ends_where_its_segment_does(tmp_path: Path, connect: Connect) -> None:
    value, count = bytes(3_000), 12

    async def boundaries(data_dir: Path, together: int) -> list[str]:
        async with open_node(data_dir) as node:
            replica = await new_topic(node, flush="os", segment_bytes="16384")
            client = connect(node)
            asked = [request(batch(value)) for _ in range(count)]
            client.answer(asked[0])
            for at in range(1, count, together):
                client.ask_all(asked[at : at + together])
            assert replica.log_end == count
            return sorted(name for name in os.listdir(replica.log.directory) if "log" in name)

    alone = await boundaries(tmp_path / "alone", 1)
    assert await boundaries(tmp_path / "together", count) == alone
    assert len(alone) > 2


async def test_a_burst_ends_where_its_segment_is_too_old(tmp_path: Path, connect: Connect) -> None:
    begun_ms = now_ms()

    async def boundaries(data_dir: Path, together: int) -> list[str]:
        async with open_node(data_dir) as node:
            replica = await new_topic(node, flush="os", segment_ms="1000")
            client = connect(node)
            asked = [request(batch_of(begun_ms + 400 * at)) for at in range(12)]
            client.answer(asked[0])
            for at in range(1, len(asked), together):
                client.ask_all(asked[at : at + together])
            assert replica.log_end == len(asked)
            return sorted(name for name in os.listdir(replica.log.directory) if "log" in name)

    alone = await boundaries(tmp_path / "alone", 1)
    assert await boundaries(tmp_path / "together", 11) == alone
    assert alone == [f"{base:020d}.log" for base in (0, 3, 6, 9)]


async def test_a_burst_is_written_in_pieces_that_the_journal_takes(
    tmp_path: Path, connect: Connect, appends: list[int]
) -> None:
    assert RUN_BYTES_MAX < JOURNALED_BYTES_MAX
    async with open_node(tmp_path) as node:
        _, client = await new_topic(node, flush="os"), connect(node)
        client.answer(request(batch()))
        third = bytes(RUN_BYTES_MAX // 3 - 200)
        assert sizes(client.ask_all([request(batch(third)) for _ in range(5)])) == [5]
        assert appends == [1, 3, 2]


async def test_what_must_follow_a_refused_batch_is_looked_at_one_by_one(
    tmp_path: Path, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no room")

    async with open_node(tmp_path) as node:
        replica, client = await new_topic(node, flush="os"), connect(node)
        client.answer(request(idempotent(0)))
        with monkeypatch.context() as patch:
            patch.setattr(OsFile, "pwrite", full)
            client.answer(request(idempotent(1)))
        refused = (ErrorCode.KAFKA_STORAGE_ERROR, -1)
        given = client.ask_all([request(idempotent(n)) for n in (2, 1, 2)])
        assert answers(given) == [refused, (0, 1), (0, 2)]
        assert values(replica) == [b"0", b"1", b"2"]


async def test_a_topic_that_stamps_its_records_stamps_those_of_a_burst(
    tmp_path: Path, connect: Connect
) -> None:
    async with open_node(tmp_path) as node:
        replica = await new_topic(node, flush="os", message_timestamp_type="LogAppendTime")
        client = connect(node)
        client.answer(request(batch()))
        given = client.ask_all([request(batch()) for _ in range(3)])
        assert sizes(given) == [3]
        assert min(answer.log_append_time_ms for _, answer in numbered(given)) > 0
        assert len(values(replica)) == 4
