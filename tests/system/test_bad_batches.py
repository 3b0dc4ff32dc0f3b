"""Batches that may not be appended: each gets the protocol's own error and a count."""

import struct
import time
from collections.abc import Callable
from select import select

import pytest
import zstandard
from crc32c import crc32c

from tests.system.attacks import (
    Peer,
    batch,
    creation,
    metric,
    production,
    rss_bytes,
)
from tidemark.client.blocking import open_client
from tidemark.protocol.errors import CorruptBatch, ErrorCode
from tidemark.protocol.frames import encode_request
from tidemark.protocol.messages.create_topics import CreateTopicsResponse
from tidemark.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from tidemark.protocol.records.compression import Compression
from tidemark.testing.process import BrokerProcess

pytestmark = pytest.mark.usefixtures("unharmed")

MIB = 1024 * 1024
LENGTH_AT, CRC_AT, ATTRIBUTES_AT, LAST_DELTA_AT, COUNT_AT, RECORDS_AT = 8, 17, 21, 23, 57, 61


def signed(data: bytearray) -> bytes:
    """With the right CRC: a client that lies on purpose."""
    struct.pack_into(">I", data, CRC_AT, crc32c(bytes(data[ATTRIBUTES_AT:])))
    return bytes(data)


def changed(at: int, value: bytes) -> Callable[[], bytes]:
    def make() -> bytes:
        data = bytearray(batch(b"one", b"two"))
        data[at : at + len(value)] = value
        return signed(data)

    return make


def wrong_crc() -> bytes:
    data = bytearray(batch(b"value"))
    data[-1] ^= 1
    return bytes(data)


def of_magic(magic: int) -> Callable[[], bytes]:
    """A message set of the old formats, sound in itself."""

    def make() -> bytes:
        timestamp = b"" if magic == 0 else struct.pack(">q", 1)
        body = struct.pack(">bb", magic, 0) + timestamp + struct.pack(">ii", -1, 5) + b"value"
        return struct.pack(">qi", 0, len(body) + 4) + struct.pack(">I", 1) + body

    return make


def bomb() -> bytes:
    """A batch of a few dozen KiB that inflates to 512 MiB."""
    made = zstandard.ZstdCompressor(level=1).compressobj()
    zeros = bytes(8 * MIB)
    inner = b"".join(made.compress(zeros) for _ in range(64)) + made.flush()
    data = bytearray(batch(b"")[:RECORDS_AT] + inner)
    struct.pack_into(">i", data, 8, len(data) - 12)
    struct.pack_into(">h", data, ATTRIBUTES_AT, Compression.ZSTD)
    return signed(data)


@pytest.mark.parametrize(
    ("make", "code", "kind"),
    [
        (wrong_crc, ErrorCode.CORRUPT_MESSAGE, "corrupt_batch"),
        (lambda: batch(b"cut off")[:-3], ErrorCode.CORRUPT_MESSAGE, "corrupt_batch"),
        (lambda: bytes(80), ErrorCode.INVALID_RECORD, "unsupported_batch"),
        (changed(8, struct.pack(">i", -1)), ErrorCode.CORRUPT_MESSAGE, "corrupt_batch"),
        (lambda: b"", ErrorCode.INVALID_RECORD, "unsupported_batch"),
        (of_magic(0), ErrorCode.INVALID_RECORD, "unsupported_batch"),
        (of_magic(1), ErrorCode.INVALID_RECORD, "unsupported_batch"),
        (lambda: batch(b"a") + batch(b"b"), ErrorCode.INVALID_RECORD, "unsupported_batch"),
        (changed(COUNT_AT, struct.pack(">i", 3)), ErrorCode.INVALID_RECORD, "unsupported_batch"),
        (changed(COUNT_AT, struct.pack(">i", -1)), ErrorCode.CORRUPT_MESSAGE, "corrupt_batch"),
        (
            changed(LAST_DELTA_AT, struct.pack(">i", 1000)),
            ErrorCode.INVALID_RECORD,
            "unsupported_batch",
        ),
        (
            changed(ATTRIBUTES_AT, struct.pack(">h", 0x20)),
            ErrorCode.INVALID_RECORD,
            "unsupported_batch",
        ),
        (lambda: batch(bytes(MIB + 100)), ErrorCode.MESSAGE_TOO_LARGE, "records_too_large"),
    ],
    ids=[
        "wrong CRC",
        "cut off",
        "zeros",
        "negative length",
        "nothing",
        "magic 0",
        "magic 1",
        "two batches",
        "too large a count",
        "negative count",
        "offsets it has no records for",
        "a control batch",
        "over max.message.bytes",
    ],
)
def test_a_bad_batch_is_refused_and_nothing_is_appended(
    victim: BrokerProcess, topic: str, make: Callable[[], bytes], code: ErrorCode, kind: str
) -> None:
    with Peer(victim.bootstrap) as peer:
        peer.create_topic(topic)
        before = metric(victim, "tidemark_bad_input_total", kind=kind)
        assert peer.produce(topic, make()) is code
        assert metric(victim, "tidemark_bad_input_total", kind=kind) == before + 1
        assert peer.produce(topic, batch(b"good")) is ErrorCode.NONE
        assert peer.fetch(topic).high_watermark == 1


def test_a_count_that_offsets_agree_with_must_fit_into_the_batch(
    victim: BrokerProcess, topic: str
) -> None:
    data = bytearray(batch(b"one"))
    struct.pack_into(">i", data, COUNT_AT, 1_000_000)
    struct.pack_into(">i", data, LAST_DELTA_AT, 999_999)
    with Peer(victim.bootstrap) as peer:
        peer.create_topic(topic)
        assert peer.produce(topic, signed(data)) is ErrorCode.INVALID_RECORD


def test_a_place_that_the_client_gives_a_batch_means_nothing(
    victim: BrokerProcess, topic: str
) -> None:
    data = bytearray(batch(b"v"))
    struct.pack_into(">q", data, 0, 2**40)
    struct.pack_into(">i", data, 12, 2**30)
    with Peer(victim.bootstrap) as peer:
        peer.create_topic(topic)
        assert peer.produce(topic, bytes(data)) is ErrorCode.NONE
        assert peer.fetch(topic).high_watermark == 1


def test_a_record_set_over_the_frame_limit_ends_the_connection(victim: BrokerProcess) -> None:
    with Peer(victim.bootstrap) as peer:
        peer.send(struct.pack(">i", 101 * MIB))
        assert peer.is_closed()


def test_clients_do_not_write_what_the_coordinator_reads(victim: BrokerProcess) -> None:
    name = "__consumer_offsets"
    with Peer(victim.bootstrap) as peer:
        peer.ask(creation(name), 5, CreateTopicsResponse)  # it may be there already
        code = peer.produce(name, batch(b"garbage", key=b"garbage"))
    assert code is ErrorCode.INVALID_TOPIC_EXCEPTION


def test_a_failed_request_with_acks_0_costs_the_connection(
    victim: BrokerProcess, topic: str
) -> None:
    with Peer(victim.bootstrap) as peer:
        peer.create_topic(topic)
        peer.send(encode_request(production(topic, batch(b"v"), acks=0), 9, 1, None))
        assert peer.produce(topic, batch(b"v")) is ErrorCode.NONE, "acks=0 has no answer"
        peer.send(encode_request(production(topic, wrong_crc(), acks=0), 9, 1, None))
        assert peer.is_closed()


@pytest.mark.parametrize("config", ["compact", "append time"])
def test_a_bomb_is_not_inflated_to_be_appended(
    victim: BrokerProcess, topic: str, config: str
) -> None:
    configs = {
        "compact": {"cleanup_policy": "compact"},
        "append time": {"message_timestamp_type": "LogAppendTime"},
    }[config]
    data = bomb()
    with Peer(victim.bootstrap) as peer:
        peer.create_topic(topic, **configs)
        memory, started = rss_bytes(victim.pid), time.perf_counter()
        code = peer.produce(topic, data)
        assert time.perf_counter() - started < 8
        assert rss_bytes(victim.pid) < memory + 150 * MIB
        assert code is (ErrorCode.INVALID_RECORD if config == "compact" else ErrorCode.NONE)


def test_a_stored_bomb_harms_neither_a_search_by_time_nor_a_reader(
    victim: BrokerProcess, topic: str
) -> None:
    request = ListOffsetsRequest(
        replica_id=-1,
        topics=[
            ListOffsetsTopic(
                name=topic, partitions=[ListOffsetsPartition(partition_index=0, timestamp=1)]
            )
        ],
    )
    with Peer(victim.bootstrap) as peer:
        peer.create_topic(topic)
        assert peer.produce(topic, bomb()) is ErrorCode.NONE
        memory, started = rss_bytes(victim.pid), time.perf_counter()
        answer = peer.ask(request, 5, ListOffsetsResponse)
        found = answer.topics[0].partitions[0]
        assert (found.error_code, found.offset) == (ErrorCode.NONE, 0), "as its header says"
        assert time.perf_counter() - started < 8
        assert rss_bytes(victim.pid) < memory + 150 * MIB
        assert peer.fetch(topic).error_code == ErrorCode.NONE
    with (
        open_client(victim.bootstrap) as client,
        client.consumer(topic, until_end=True) as consumer,
        pytest.raises(CorruptBatch),
    ):
        list(consumer)


def late_by_its_word(records: int) -> bytes:
    """A batch that states a later time than any of its many records has: a kilobyte of them."""
    now_ms = int(time.time() * 1000)
    record = bytes((12, 0, 0, 0, 1, 1, 0))  # at the batch's own time, without key and value
    section = zstandard.ZstdCompressor().compress(record * records)
    data = bytearray(batch(b"")[:RECORDS_AT]) + section
    struct.pack_into(">i", data, LENGTH_AT, len(data) - 12)
    struct.pack_into(">h", data, ATTRIBUTES_AT, Compression.ZSTD)
    struct.pack_into(">iqq", data, LAST_DELTA_AT, records - 1, now_ms, now_ms + 60_000)
    struct.pack_into(">i", data, COUNT_AT, records)
    return signed(data)


def test_who_looks_for_a_time_in_millions_of_records_holds_up_nobody(
    victim: BrokerProcess, topic: str
) -> None:
    data = late_by_its_word(3_000_000)
    request = ListOffsetsRequest(
        replica_id=-1,
        topics=[
            ListOffsetsTopic(
                name=topic,
                partitions=[
                    ListOffsetsPartition(
                        partition_index=0, timestamp=int(time.time() * 1000) + 30_000
                    )
                ],
            )
        ],
    )
    with Peer(victim.bootstrap) as seeker, Peer(victim.bootstrap) as other:
        seeker.create_topic(topic)
        assert seeker.produce(topic, data) is ErrorCode.NONE
        seeker.send(encode_request(request, 5, 7, "seeker"))
        for _ in range(5):
            assert other.produce(topic, batch(b"value")) is ErrorCode.NONE
        assert not select([seeker.socket], [], [], 0)[0], "the search was over before the others"
        found = seeker.read(request, 5, ListOffsetsResponse).topics[0].partitions[0]
        assert (found.error_code, found.offset) == (ErrorCode.NONE, -1)
