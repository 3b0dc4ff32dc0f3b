import struct
from contextlib import suppress

import pytest
from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatch as KafkaPythonBatch

from tests.protocol.records.layout import UNCOMPRESSED_BATCH
from tests.protocol.records.strategies import CODECS, RECORDS
from tidemark.protocol.errors import CorruptBatch
from tidemark.protocol.records.compression import Compression
from tidemark.protocol.records.header import check_batch, seal
from tidemark.protocol.records.records import Record, decode_batch, decode_records, encode_batch
from tidemark.protocol.records.varints import read_varint, varint
from tidemark.protocol.types import Offset


def at_offsets(records: list[Record], base_offset: int) -> list[Record]:
    return [r._replace(offset=Offset(base_offset + i)) for i, r in enumerate(records)]


@given(records=RECORDS, codec=CODECS, base_offset=st.integers(0, 2**62))
def test_records_come_back_with_their_offsets(
    records: list[Record], codec: Compression, base_offset: int
) -> None:
    batch = encode_batch(records, base_offset=Offset(base_offset), compression=codec)
    header = check_batch(batch)
    assert decode_records(batch) == at_offsets(records, base_offset)
    assert header.max_timestamp == max(r.timestamp_ms for r in records)
    assert header.compression == codec


@given(records=RECORDS)
def test_construct_reads_and_builds_the_same_bytes(records: list[Record]) -> None:
    batch = encode_batch(records)
    parsed = UNCOMPRESSED_BATCH.parse(batch)
    base = parsed.header.base_timestamp
    assert [
        Record(
            offset=Offset(r.offset_delta),
            timestamp_ms=base + r.timestamp_delta,
            key=r.key.data,
            value=r.value.data,
            headers=tuple((h.key, h.value.data) for h in r.headers),
        )
        for r in parsed.records
    ] == decode_records(batch)
    assert UNCOMPRESSED_BATCH.build(parsed) == batch


@given(records=RECORDS, codec=CODECS)
def test_aiokafka_reads_what_we_write(records: list[Record], codec: Compression) -> None:
    theirs = DefaultRecordBatch(encode_batch(records, compression=codec))
    assert theirs.validate_crc()
    assert [
        Record(Offset(r.offset), r.timestamp, r.key, r.value, tuple(r.headers)) for r in theirs
    ] == at_offsets(records, 0)


@given(records=RECORDS, codec=CODECS)
def test_kafka_python_reads_what_we_write(records: list[Record], codec: Compression) -> None:
    theirs = KafkaPythonBatch(encode_batch(records, compression=codec))
    assert theirs.validate_crc()
    assert [
        Record(Offset(r.offset), r.timestamp, r.key, r.value, tuple(r.headers)) for r in theirs
    ] == at_offsets(records, 0)


@given(records=RECORDS, codec=CODECS)
def test_we_read_what_aiokafka_writes(records: list[Record], codec: Compression) -> None:
    # Its builder takes -1 for "no base timestamp yet".
    records = [r._replace(timestamp_ms=abs(r.timestamp_ms)) for r in records]
    builder = DefaultRecordBatchBuilder(2, codec, 0, -1, -1, -1, 1 << 20)
    for offset, r in enumerate(records):
        builder.append(offset, r.timestamp_ms, r.key, r.value, list(r.headers))
    batch = bytes(builder.build())
    check_batch(batch)
    assert decode_records(batch) == at_offsets(records, 0)


def test_batches_back_to_back_are_read_and_a_cut_one_is_left_out() -> None:
    first = encode_batch([Record(value=b"a")])
    second = encode_batch([Record(value=b"b")], base_offset=Offset(1))
    assert [r.value for r in decode_records(first + second + first[:-1])] == [b"a", b"b"]


def test_f13_transaction_markers_are_no_records_of_the_application() -> None:
    marker = encode_batch(
        [Record(key=struct.pack(">hh", 0, 1), value=struct.pack(">hi", 0, 3))],
        is_transactional=True,
        is_control=True,
        producer_id=5,
        producer_epoch=0,
    )
    header = check_batch(marker)
    assert decode_records(marker) == []
    assert [r.key for r in decode_batch(marker, header)] == [b"\x00\x00\x00\x01"]


def test_the_bound_on_what_a_batch_inflates_to_is_held() -> None:
    batch = encode_batch([Record(value=bytes(10_000))], compression=Compression.ZSTD)
    with pytest.raises(CorruptBatch, match="inflates to over 5000"):
        decode_records(batch, decompressed_bytes_max=5000)


def test_a_header_key_that_is_not_utf8_does_not_hide_its_record() -> None:
    batch = bytearray(encode_batch([Record(headers=(("xx", b"v"),))]))
    at = batch.index(b"xx")
    batch[at : at + 2] = b"\xff\xfe"
    seal(batch, 0)
    assert decode_records(batch)[0].headers == (("\ufffd\ufffd", b"v"),)


@given(
    records=RECORDS,
    changes=st.lists(st.tuples(st.integers(23, 1 << 12), st.integers(0, 255)), max_size=4),
    cut=st.integers(0, 40),
)
def test_bytes_with_a_right_crc_that_are_wrong_are_corrupt_or_records(
    records: list[Record], changes: list[tuple[int, int]], cut: int
) -> None:
    batch = bytearray(encode_batch(records))
    for at, byte in changes:
        batch[23 + at % (len(batch) - 23)] = byte
    del batch[max(61, len(batch) - cut) :]
    struct.pack_into(">i", batch, 8, len(batch) - 12)
    seal(batch, 0)
    with suppress(CorruptBatch):
        decode_records(batch)


@given(data=st.binary(max_size=200))
def test_garbage_is_corrupt_or_no_records(data: bytes) -> None:
    with suppress(CorruptBatch):
        assert decode_records(data) == []


@given(value=st.integers(-(2**63), 2**63 - 1))
def test_varints_of_64_bits_come_back(value: int) -> None:
    encoded = varint(value)
    assert read_varint(encoded, 0) == (value, len(encoded))
    assert len(encoded) <= 10


def test_a_varint_that_goes_on_is_refused() -> None:
    with pytest.raises(ValueError, match="ten bytes"):
        read_varint(b"\xff" * 11, 0)
