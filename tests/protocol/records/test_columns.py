"""Columns are records: what the vectorised path makes of bytes, the plain one makes of them."""

import struct
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.protocol.records.column_batches import BATCHES, SAMPLE, columns_of, log_of
from tests.protocol.records.strategies import RECORDS, records_of
from tidemark.protocol.buffers import Buffers
from tidemark.protocol.errors import CorruptBatch
from tidemark.protocol.records.columns import SCHEMA, decode_columns
from tidemark.protocol.records.columns.varints import Unusual, VarintReader
from tidemark.protocol.records.compression import Compression
from tidemark.protocol.records.header import (
    build_batch,
    place,
    place_log_append_time,
    read_header,
    seal,
)
from tidemark.protocol.records.records import (
    Record,
    decode_batch,
    decode_records,
    encode_batch,
)
from tidemark.protocol.records.varints import varint
from tidemark.protocol.types import Epoch, Offset


@given(batches=BATCHES)
def test_columns_are_the_records(batches: list[tuple[list[Record], Compression]]) -> None:
    log = log_of(batches)
    columns = decode_columns(log)
    columns.validate(full=True)
    assert columns.equals(columns_of(decode_records(log)))
    assert decode_columns(log, memory=Buffers()).equals(columns)


@given(batches=BATCHES, start=st.integers(0, 60), length=st.integers(0, 60))
def test_a_range_of_offsets_is_that_part(
    batches: list[tuple[list[Record], Compression]], start: int, length: int
) -> None:
    log, end = log_of(batches), start + length
    expected = [r for r in decode_records(log) if start <= r.offset < end]
    columns = decode_columns(log, start=Offset(start), end=Offset(end))
    assert columns.equals(columns_of(expected))


@given(
    records=RECORDS,
    names=st.lists(st.sampled_from(SCHEMA.names), min_size=1, unique=True),
)
def test_only_the_columns_asked_for_come_in_the_order_asked_for(
    records: list[Record], names: list[str]
) -> None:
    log = encode_batch(records)
    assert decode_columns(log, columns=names).equals(decode_columns(log).select(names))


def test_what_is_not_asked_for_is_not_looked_at() -> None:
    batch = bytearray(encode_batch([Record(key=b"k", value=b"v")]))
    batch[-1] = 9  # nine headers, and no bytes for them
    seal(batch, 0)
    assert decode_columns(batch, columns=["offset", "value"]).num_rows == 1
    with pytest.raises(CorruptBatch):
        decode_columns(batch)


def test_an_unknown_column_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        decode_columns(b"", columns=["topic"])


def test_no_batches_are_no_rows() -> None:
    assert decode_columns(b"").equals(columns_of([]))
    assert decode_columns(encode_batch(SAMPLE)[:-1]).num_rows == 0


def test_times_are_utc() -> None:
    columns = decode_columns(encode_batch(SAMPLE[:1]))
    assert columns["timestamp"][0].as_py() == datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)


def test_log_append_time_is_the_time_of_every_record_of_its_batch() -> None:
    log = bytearray(encode_batch(SAMPLE[:2]) + encode_batch(SAMPLE[2:4]))
    place_log_append_time(log, 0, 5)
    columns = decode_columns(log)
    assert columns["timestamp_type"].to_pylist() == [1, 1, 0, 0]
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    assert columns["timestamp"].to_pylist() == [epoch + timedelta(milliseconds=5)] * 2 + [
        epoch + timedelta(milliseconds=r.timestamp_ms) for r in SAMPLE[2:4]
    ]


def test_f13_transaction_markers_are_left_out() -> None:
    marker = encode_batch([Record(key=b"\0\0\0\1")], is_control=True, is_transactional=True)
    assert decode_columns(marker + encode_batch(SAMPLE[:3]) + marker).num_rows == 3


@given(
    batches=BATCHES,
    changes=st.lists(st.tuples(st.integers(0, 1 << 14), st.integers(0, 255)), max_size=4),
)
def test_bytes_with_a_right_crc_that_are_wrong_are_the_same_error_or_the_same_records(
    batches: list[tuple[list[Record], Compression]], changes: list[tuple[int, int]]
) -> None:
    batch = bytearray(log_of(batches[:1]))
    for at, byte in changes:
        batch[21 + at % (len(batch) - 21)] = byte
    seal(batch, 0)
    try:
        header = read_header(batch)
        records = decode_batch(batch, header, decompressed_bytes_max=1 << 30)
        expected = [] if header.is_control else records
        if any(not -(2**63) <= n < 2**63 for r in records for n in r[:2]):
            raise CorruptBatch(0, "over 64 bits")
    except CorruptBatch:
        with suppress(CorruptBatch):
            # A batch that cannot be read may still be a transaction's marker.
            assert decode_columns(batch).num_rows == 0
        return
    columns = decode_columns(batch)
    assert columns.drop_columns(["timestamp_type"]).equals(
        columns_of(expected).drop_columns(["timestamp_type"])
    )


@given(data=st.binary(max_size=300))
def test_garbage_is_corrupt_or_no_rows(data: bytes) -> None:
    with suppress(CorruptBatch):
        assert decode_columns(data).num_rows == 0


def test_the_bound_is_on_all_batches_together() -> None:
    log = log_of([([Record(value=bytes(10_000))], Compression.ZSTD)] * 3)
    assert decode_columns(log, bytes_max=31_000).num_rows == 3
    with pytest.raises(CorruptBatch, match="inflates"):
        decode_columns(log, bytes_max=29_000)
    plain = log_of([([Record(value=bytes(10_000))], Compression.NONE)] * 3)
    with pytest.raises(CorruptBatch, match="over 29000"):
        decode_columns(plain, bytes_max=29_000)


@pytest.mark.parametrize(
    "odd",
    [
        Record(headers=tuple((f"h{i}", b"") for i in range(100))),
        Record(timestamp_ms=-(2**61)),
        Record(value=b"x", headers=(("\U0001f40c", None),)),
    ],
    ids=["many headers", "far time", "unicode"],
)
def test_the_unusual_is_decoded_too(odd: Record) -> None:
    log = encode_batch([Record(timestamp_ms=5), odd])
    assert decode_columns(log).equals(columns_of(decode_records(log)))


def test_offsets_at_the_end_of_their_range_are_decoded() -> None:
    batch = bytearray(encode_batch(SAMPLE[:2]))
    place(batch, 0, base_offset=Offset(2**63 - 2), epoch=Epoch(0))
    assert decode_columns(batch)["offset"].to_pylist() == [2**63 - 2, 2**63 - 1]
    place(batch, 0, base_offset=Offset(2**63 - 1), epoch=Epoch(0))
    with pytest.raises(CorruptBatch, match="64 bits"):
        decode_columns(batch)


def test_a_header_key_that_is_not_utf8_does_not_hide_its_record() -> None:
    batch = bytearray(encode_batch([Record(headers=(("xx", b"v"),))]))
    at = batch.index(b"xx")
    batch[at : at + 2] = b"\xff\xfe"
    seal(batch, 0)
    assert decode_columns(batch)["headers"][0].as_py() == [{"key": "\ufffd\ufffd", "value": b"v"}]


def test_a_count_of_records_that_cannot_be_there_takes_no_memory() -> None:
    header = read_header(encode_batch(SAMPLE))
    huge = header._replace(record_count=2**31 - 1, last_offset_delta=2**31 - 1)
    with pytest.raises(CorruptBatch):
        decode_columns(build_batch(bytes(100), huge))


@given(values=st.lists(st.integers(-(2**55), 2**55 - 1), min_size=1, max_size=20))
def test_varints_are_read_at_many_positions_at_once(values: list[int]) -> None:
    encoded = [varint(value) for value in values]
    ends = np.cumsum([len(one) for one in encoded])
    starts = ends - [len(one) for one in encoded]
    reader = VarintReader(np.frombuffer(b"".join(encoded), np.uint8))
    read, after = reader.read(starts)
    assert read.tolist() == values
    assert after.tolist() == ends.tolist()


def test_a_varint_of_nine_bytes_is_left_to_the_plain_path() -> None:
    reader = VarintReader(np.frombuffer(varint(2**60) + struct.pack("q", 0), np.uint8))
    with pytest.raises(Unusual):
        reader.read(np.array([0]))


@given(records=st.lists(records_of(headers=st.just(())), min_size=1, max_size=20))
def test_a_memoryview_of_part_of_a_buffer_will_do(records: list[Record]) -> None:
    batch = encode_batch(records)
    view = memoryview(b"before" + batch + b"after")[6 : 6 + len(batch)]
    assert decode_columns(view).equals(decode_columns(batch))
