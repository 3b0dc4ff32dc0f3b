"""Produce: offsets, acknowledgements, and what waits for a commit."""

import errno
import os
import struct
from dataclasses import replace
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from tests.broker.handlers.producing import (
    batch,
    begin,
    new_topic,
    now_ms,
    produce,
    request,
    stored,
    values,
)
from tests.broker.held_disk import HeldDisk
from tests.broker.jumping import jumping
from tests.broker.nodes import open_node
from tidemark.broker.network.requests import Pending, Unanswerable
from tidemark.partitions.storage.log import Log
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.messages.produce import ProduceResponse
from tidemark.protocol.records.header import iter_headers
from tidemark.protocol.records.records import Record, decode_records, encode_batch


async def test_records_get_the_offsets_that_come_next(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        replica = await new_topic(node)
        for n, count in enumerate([2, 1, 3]):
            answer = await produce(node, request(batch(*[b"%d" % n] * count)))
            assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, (0, 2, 3)[n])
            assert answer.log_append_time_ms == -1
            assert answer.log_start_offset == 0
        assert [value for _, value in values(replica)] == [b"0", b"0", b"1", b"2", b"2", b"2"]


@pytest.mark.parametrize("version", range(3, 14))
async def test_every_version_that_is_spoken_is_answered(tmp_path: Path, version: int) -> None:
    async with open_node(tmp_path) as node:
        replica = await new_topic(node)
        answer = await produce(node, request(batch(), topic_id=replica.topic_id), version)
        assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, 0)


async def test_with_flush_commit_all_acks_wait_for_the_disk(tmp_path: Path, disk: HeldDisk) -> None:
    async with open_node(tmp_path) as node:
        replica = await new_topic(node)
        disk.hold()
        answer = begin(node, request(batch(b"a", b"b")))
        assert isinstance(answer, Pending)
        assert replica.high_watermark == 0
        assert values(replica) == []
        disk.release()
        assert answer.is_complete
        assert values(replica) == [(0, b"a"), (1, b"b")]


async def test_with_flush_os_the_append_is_the_commit(tmp_path: Path, disk: HeldDisk) -> None:
    async with open_node(tmp_path) as node:
        replica = await new_topic(node, flush="os")
        disk.hold()
        assert isinstance(begin(node, request(batch(b"a"))), ProduceResponse)
        assert values(replica) == [(0, b"a")]


async def test_acks_1_is_answered_before_the_commit(tmp_path: Path, disk: HeldDisk) -> None:
    async with open_node(tmp_path) as node:
        replica = await new_topic(node)
        disk.hold()
        assert isinstance(begin(node, request(batch(b"a"), acks=1)), ProduceResponse)
        assert replica.log_end == 1
        assert values(replica) == []


async def test_p3_acks_0_is_not_answered(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        replica = await new_topic(node, flush="os")
        assert begin(node, request(batch(b"a"), acks=0)) is None
        assert values(replica) == [(0, b"a")]


async def test_p3_a_failed_request_with_acks_0_closes_the_connection(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        with pytest.raises(Unanswerable, match="UNKNOWN_TOPIC"):
            begin(node, request(batch(), topic="unknown", acks=0))


@pytest.mark.parametrize("acks", [-2, 2, 3, 32767])
async def test_p4_other_acks_are_refused(tmp_path: Path, acks: int) -> None:
    async with open_node(tmp_path) as node:
        replica = await new_topic(node)
        answer = await produce(node, request(batch(), acks=acks))
        assert answer.error_code == ErrorCode.INVALID_REQUIRED_ACKS
        assert replica.log_end == 0


@pytest.mark.parametrize(("topic", "partition"), [("unknown", 0), ("t", 1), ("t", -1)])
async def test_an_unknown_partition_is_said_to_be(
    tmp_path: Path, topic: str, partition: int
) -> None:
    async with open_node(tmp_path) as node:
        await new_topic(node)
        answer = await produce(node, request(batch(), topic=topic, partition=partition))
        assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert answer.base_offset == -1


async def test_p7_only_place_and_epoch_are_written_into_a_batch(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        replica = await new_topic(node)
        await produce(node, request(batch(b"first")))
        sent = bytearray(batch(b"a", b"b"))
        struct.pack_into(">q", sent, 0, 77)
        struct.pack_into(">i", sent, 12, 88)
        await produce(node, request(bytes(sent)))
        kept = stored(replica)[len(batch(b"first")) :]
        assert struct.unpack_from(">qii", kept) == (1, len(sent) - 12, replica.epoch)
        assert kept[16:] == sent[16:]


async def test_p7_log_append_time_is_written_with_its_bit_and_a_new_crc(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        replica = await new_topic(node, message_timestamp_type="LogAppendTime")
        before = now_ms()
        answer = await produce(
            node, request(encode_batch([Record(timestamp_ms=1, value=b"old")] * 2))
        )
        assert before <= answer.log_append_time_ms <= now_ms()
        (_, header) = next(iter_headers(stored(replica)))
        assert header.is_log_append_time
        assert header.max_timestamp == answer.log_append_time_ms
        assert [r.timestamp_ms for r in decode_records(stored(replica))] == [
            answer.log_append_time_ms
        ] * 2


@pytest.mark.parametrize(
    ("number", "passes"),
    [
        (errno.ENOSPC, True),
        (errno.EDQUOT, True),
        (errno.EMFILE, True),
        (errno.EIO, False),
        (errno.EROFS, False),
    ],
)
async def test_a_log_that_cannot_be_written_to_ends_the_broker_unless_that_may_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, passes: bool
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    ends = list[OSError]()
    async with open_node(tmp_path) as node:
        await new_topic(node)
        with monkeypatch.context() as patch:
            patch.setattr(Log, "append_run", refuse)
            patch.setattr(node.disk, "fail", ends.append)
            answer = await produce(node, request(batch()))
            assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert [error.errno for error in ends] == ([] if passes else [number])


async def test_what_is_not_committed_in_time_is_said_to_have_timed_out(
    tmp_path: Path, disk: HeldDisk, clock: MockClock
) -> None:
    async with open_node(tmp_path) as node:
        replica = await new_topic(node)
        timers = len(node.timers)
        disk.hold()
        with jumping(clock):
            answer = await produce(node, request(batch(b"a"), timeout_ms=5_000))
        assert answer.error_code == ErrorCode.REQUEST_TIMED_OUT
        # It is in the log, and may be committed yet.
        disk.release()
        assert values(replica) == [(0, b"a")]
        assert len(node.timers) <= timers


async def test_a_client_that_goes_leaves_no_timer(tmp_path: Path, disk: HeldDisk) -> None:
    async with open_node(tmp_path) as node:
        await new_topic(node)
        disk.hold()
        before = len(node.timers)
        answer = begin(node, request(batch()))
        assert isinstance(answer, Pending)
        assert len(node.timers) == before + 1
        answer.abandon()
        assert len(node.timers) == before


async def test_who_waits_for_a_topic_that_is_deleted_is_told(
    tmp_path: Path, disk: HeldDisk
) -> None:
    async with open_node(tmp_path) as node:
        await new_topic(node)
        disk.hold()
        answer = begin(node, request(batch()))
        assert isinstance(answer, Pending)
        topic = node.topics.get("t")
        assert topic is not None
        topic.replicas[0].delete()
        assert answer.is_complete


async def test_after_a_live_change_to_flush_os_nothing_waits_for_the_disk(
    tmp_path: Path, disk: HeldDisk
) -> None:
    async with open_node(tmp_path) as node:
        replica = await new_topic(node)
        disk.hold()
        answer = begin(node, request(batch()))
        assert isinstance(answer, Pending)
        replica.apply_config(replace(replica.config, flush="os"))
        with trio.fail_after(20):
            while replica.member.syncs_before_ack:  # noqa: ASYNC110
                await trio.sleep(0.01)
        assert isinstance(begin(node, request(batch())), ProduceResponse)
        assert replica.high_watermark == 2
        disk.release()
        assert answer.is_complete


async def test_what_is_produced_is_counted_by_topic(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        await new_topic(node)
        records = batch(b"a", b"b", b"c")
        await produce(node, request(records))
        counted = node.metrics.topic("t")
        assert (counted.records_in.value, counted.bytes_in.value) == (3, len(records))
