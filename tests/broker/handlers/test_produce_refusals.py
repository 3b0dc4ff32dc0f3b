"""Produce: what is looked at in a batch before it is taken, and what it is refused with."""

import struct
from pathlib import Path

import pytest

from tests.broker.handlers.asking import wait
from tests.broker.handlers.producing import (
    batch,
    begin,
    new_topic,
    now_ms,
    produce,
    request,
    values,
)
from tests.broker.nodes import open_node
from tidemark.broker.metrics import BadInput
from tidemark.broker.network.requests import Pending
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.messages.produce import ProduceRequest
from tidemark.protocol.records.compression import Compression, compress
from tidemark.protocol.records.header import build_batch, read_header, seal
from tidemark.protocol.records.records import Record, encode_batch


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
        with node.disk.others():  # not on the loop, which would have it written at once
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


async def test_what_is_no_records_is_not_asked_for_again_by_a_compacted_topic(
    tmp_path: Path,
) -> None:
    """Clients send what is called corrupt again: the bytes may have been changed on their way."""
    async with open_node(tmp_path) as node:
        await new_topic(node, cleanup_policy="compact")
        garbage = build_batch(b"\xff" * 60, read_header(batch(key=b"k")))
        assert (await produce(node, request(garbage))).error_code == ErrorCode.INVALID_RECORD
        changed = bytearray(batch(key=b"k"))
        changed[-1] ^= 1
        assert (
            await produce(node, request(bytes(changed)))
        ).error_code == ErrorCode.CORRUPT_MESSAGE


async def test_of_many_keyless_records_a_few_are_named(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        await new_topic(node, cleanup_policy="compact")
        count = 50_000
        refused = await produce(node, request(batch(*[b"v"] * count, compression=Compression.ZSTD)))
        assert refused.error_code == ErrorCode.INVALID_RECORD
        assert [each.batch_index for each in refused.record_errors] == list(range(100))


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
