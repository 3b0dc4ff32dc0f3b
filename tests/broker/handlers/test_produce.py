import errno
import os
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from tests.broker.handlers.asking import wait
from tests.broker.handlers.producing import batch, begin, new_topic, now_ms, produce, request
from tests.broker.held_disk import HeldDisk
from tests.broker.jumping import jumping
from tests.broker.nodes import open_node
from tidemark.broker.metrics import BadInput
from tidemark.broker.network.requests import Pending, Unanswerable
from tidemark.broker.replicas.replica import Replica
from tidemark.partitions.storage.log import Log
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.produce import ProduceRequest, ProduceResponse
from tidemark.protocol.records.compression import Compression, compress
from tidemark.protocol.records.header import build_batch, iter_headers, read_header, seal
from tidemark.protocol.records.records import Record, decode_records, encode_batch


def stored(replica: Replica) -> bytes:
    """All that is committed."""
    return replica.read(replica.log_start, bytes_max=1_000_000, at_least_one=True).read()


def values(replica: Replica) -> list[tuple[int, bytes | None]]:
    return [(record.offset, record.value) for record in decode_records(stored(replica))]


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> HeldDisk:
    return HeldDisk(monkeypatch)


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


def magic(number: int) -> bytes:
    made = bytearray(batch())
    made[16] = number
    return bytes(made)


def wrong_crc() -> bytes:
    made = bytearray(batch())
    made[-1] ^= 1
    return bytes(made)


def counting(record_count: int, last_offset_delta: int) -> bytes:
    """A batch of one record that says it has others."""
    made = bytearray(batch())
    struct.pack_into(">i", made, 57, record_count)
    struct.pack_into(">i", made, 23, last_offset_delta)
    seal(made, 0)
    return bytes(made)


REFUSED = {
    "p5 two batches": (batch() + batch(), ErrorCode.INVALID_RECORD),
    "p5 no batch": (b"", ErrorCode.INVALID_RECORD),
    "p5 null": (None, ErrorCode.INVALID_RECORD),
    "p5 bytes behind it": (batch() + b"\0", ErrorCode.INVALID_RECORD),
    "p6 magic 0": (magic(0), ErrorCode.INVALID_RECORD),
    "p6 magic 1": (magic(1), ErrorCode.INVALID_RECORD),
    "magic 3": (magic(3), ErrorCode.INVALID_RECORD),
    "wrong CRC": (wrong_crc(), ErrorCode.CORRUPT_MESSAGE),
    "cut off": (batch()[:-1], ErrorCode.CORRUPT_MESSAGE),
    "cut off in its header": (batch()[:40], ErrorCode.CORRUPT_MESSAGE),
    "a control batch": (batch(is_control=True), ErrorCode.INVALID_RECORD),
    "a transaction's batch": (
        batch(is_transactional=True, producer_id=1, producer_epoch=0, base_sequence=0),
        ErrorCode.INVALID_TXN_STATE,
    ),
    "no records": (counting(0, 0), ErrorCode.INVALID_RECORD),
    "offsets that are stolen": (counting(1, 5), ErrorCode.INVALID_RECORD),
    "records that are not there": (counting(1_000, 999), ErrorCode.INVALID_RECORD),
}


@pytest.mark.parametrize(("records", "code"), REFUSED.values(), ids=REFUSED.keys())
async def test_a_batch_that_is_not_as_it_must_be_is_refused(
    tmp_path: Path, records: bytes | None, code: ErrorCode
) -> None:
    async with open_node(tmp_path) as node:
        replica = await new_topic(node)
        answer = await produce(node, request(records))
        assert ErrorCode(answer.error_code) is code
        assert answer.base_offset == -1
        assert answer.error_message
        assert replica.log_end == 0


@pytest.mark.parametrize(
    ("records", "kind"),
    [
        (wrong_crc(), BadInput.CORRUPT_BATCH),
        (magic(1), BadInput.UNSUPPORTED_BATCH),
        (batch(bytes(3_000)), BadInput.RECORDS_TOO_LARGE),
    ],
    ids=["wrong CRC", "magic 1", "too large"],
)
async def test_bad_batches_are_counted(tmp_path: Path, records: bytes, kind: BadInput) -> None:
    async with open_node(tmp_path) as node:
        await new_topic(node, max_message_bytes="2000")
        await produce(node, request(records))
        assert node.metrics.bad_input[kind].value == 1


async def test_a_refused_partition_does_not_fail_the_others(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        await new_topic(node, "good")
        await new_topic(node, "bad")
        good, bad = request(batch(), topic="good"), request(wrong_crc(), topic="bad")
        both = ProduceRequest(
            acks=-1, timeout_ms=1_000, topic_data=[*bad.topic_data, *good.topic_data]
        )
        pending = begin(node, both)
        assert isinstance(pending, Pending)
        await wait(pending)
        replica = node.topics.replica("good", 0)
        assert replica is not None
        assert replica.high_watermark == 1


async def test_p5_zstd_needs_version_7(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        replica = await new_topic(node)
        records = batch(b"x" * 1_000, compression=Compression.ZSTD)
        refused = await produce(node, request(records), 6)
        assert refused.error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        assert (await produce(node, request(records), 7)).error_code == ErrorCode.NONE
        assert values(replica) == [(0, b"x" * 1_000)]


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


async def test_p11_a_batch_over_max_message_bytes_is_too_large(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        records = batch(bytes(1_000))
        exact = await new_topic(node, "exact", max_message_bytes=str(len(records)))
        await new_topic(node, "short", max_message_bytes=str(len(records) - 1))
        assert (await produce(node, request(records, topic="exact"))).error_code == ErrorCode.NONE
        assert exact.log_end == 1
        refused = await produce(node, request(records, topic="short"))
        assert refused.error_code == ErrorCode.MESSAGE_TOO_LARGE


async def test_p12_keyless_records_of_a_compacted_topic_are_named(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        await new_topic(node, cleanup_policy="compact")
        now = now_ms()
        records = encode_batch(
            [Record(timestamp_ms=now, key=key, value=b"v") for key in (b"key", None, b"key", None)]
        )
        refused = await produce(node, request(records))
        assert refused.error_code == ErrorCode.INVALID_RECORD
        assert [each.batch_index for each in refused.record_errors] == [1, 3]
        keyed = await produce(node, request(batch(key=b"key")))
        assert keyed.error_code == ErrorCode.NONE


async def test_a_batch_of_millions_of_records_is_not_looked_into_for_keys(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        replica = await new_topic(node, cleanup_policy="compact")
        count = 1_000_001
        section = compress(Compression.GZIP, bytes(8 * count))
        header = read_header(batch(key=b"k"))
        records = build_batch(
            section,
            header._replace(
                attributes=Compression.GZIP, record_count=count, last_offset_delta=count - 1
            ),
        )
        refused = await produce(node, request(records))
        assert refused.error_code == ErrorCode.INVALID_RECORD
        assert "1000001 records" in (refused.error_message or "")
        assert replica.log_end == 0


@pytest.mark.parametrize(
    ("config", "age_ms", "code"),
    [
        ({"message_timestamp_after_max_ms": "60000"}, -90_000, ErrorCode.INVALID_TIMESTAMP),
        ({"message_timestamp_after_max_ms": "60000"}, -30_000, ErrorCode.NONE),
        ({"message_timestamp_before_max_ms": "60000"}, 90_000, ErrorCode.INVALID_TIMESTAMP),
        ({"message_timestamp_before_max_ms": "60000"}, 30_000, ErrorCode.NONE),
        ({"message_timestamp_before_max_ms": "60000"}, None, ErrorCode.NONE),
    ],
)
async def test_timestamps_have_bounds(
    tmp_path: Path, config: dict[str, str], age_ms: int | None, code: ErrorCode
) -> None:
    async with open_node(tmp_path) as node:
        await new_topic(node, **config)
        timestamp_ms = -1 if age_ms is None else now_ms() - age_ms
        records = encode_batch([Record(timestamp_ms=timestamp_ms, value=b"v")])
        assert ErrorCode((await produce(node, request(records))).error_code) is code


def idempotent(sequence: int, count: int = 1, epoch: int = 0) -> bytes:
    return batch(
        *[b"s%d" % sequence] * count, producer_id=7, producer_epoch=epoch, base_sequence=sequence
    )


async def test_p8_a_duplicate_is_answered_with_the_original_offset(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        replica = await new_topic(node)
        for sequence in range(5):
            await produce(node, request(idempotent(sequence)))
        for sequence in (0, 4, 2):
            again = await produce(node, request(idempotent(sequence)))
            assert (again.error_code, again.base_offset) == (ErrorCode.NONE, sequence)
        assert replica.log_end == 5


async def test_p8_a_gap_and_an_old_epoch_are_refused(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        await new_topic(node)
        await produce(node, request(idempotent(0, epoch=1)))
        gap = await produce(node, request(idempotent(5, epoch=1)))
        assert gap.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        fenced = await produce(node, request(idempotent(1, epoch=0)))
        assert fenced.error_code == ErrorCode.INVALID_PRODUCER_EPOCH


@pytest.mark.parametrize(
    ("refuses", "error", "code"),
    [
        (Log.append_run, OSError(errno.ENOSPC, "no room"), ErrorCode.KAFKA_STORAGE_ERROR),
        (
            Replica.check_in_sync,
            RequestError(ErrorCode.NOT_ENOUGH_REPLICAS, "too few"),
            ErrorCode.NOT_ENOUGH_REPLICAS,
        ),
    ],
)
async def test_who_follows_what_the_broker_could_not_take_is_not_out_of_order(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    refuses: Callable[..., object],
    error: Exception,
    code: ErrorCode,
) -> None:
    """librdkafka#4953: it would begin a new epoch for all of its partitions."""

    def refuse(*_: object) -> None:
        raise error

    async with open_node(tmp_path) as node:
        replica = await new_topic(node)
        await produce(node, request(idempotent(0)))
        with monkeypatch.context() as patch:
            owner = Log if refuses is Log.append_run else Replica
            patch.setattr(owner, refuses.__name__, refuse)
            assert (await produce(node, request(idempotent(1)))).error_code == code
        for sequence in (2, 3):
            assert (await produce(node, request(idempotent(sequence)))).error_code == code
        for sequence in (1, 2, 3):
            answer = await produce(node, request(idempotent(sequence)))
            assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, sequence)
        assert replica.log_end == 4


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


async def test_a_duplicate_waits_until_its_original_is_committed(
    tmp_path: Path, disk: HeldDisk
) -> None:
    async with open_node(tmp_path) as node:
        replica = await new_topic(node)
        disk.hold()
        first, again = (begin(node, request(idempotent(0))) for _ in range(2))
        assert isinstance(first, Pending)
        assert isinstance(again, Pending)
        assert replica.log_end == 1
        disk.release()
        assert first.is_complete
        assert again.is_complete


async def test_producers_are_remembered_through_a_restart(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        await new_topic(node)
        for sequence in range(3):
            await produce(node, request(idempotent(sequence)))
    async with open_node(tmp_path) as node:
        again = await produce(node, request(idempotent(1)))
        assert (again.error_code, again.base_offset) == (ErrorCode.NONE, 1)
        following = await produce(node, request(idempotent(3)))
        assert (following.error_code, following.base_offset) == (ErrorCode.NONE, 3)


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


async def test_a_transaction_is_a_producers(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        await new_topic(node)
        nobodys = batch(is_transactional=True)
        refused = await produce(node, request(nobodys, transactional_id="tx"))
        assert refused.error_code == ErrorCode.INVALID_RECORD


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
