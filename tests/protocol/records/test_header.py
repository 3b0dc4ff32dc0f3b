import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.protocol.records.layout import HEADER
from tidemark.protocol.errors import CorruptBatch, UnsupportedMagic
from tidemark.protocol.records.compression import Compression
from tidemark.protocol.records.header import (
    HEADER_BYTES,
    BatchHeader,
    check_batch,
    check_crc,
    iter_headers,
    pack_header,
    place,
    place_log_append_time,
    read_header,
)
from tidemark.protocol.records.records import Record, decode_records, encode_batch
from tidemark.protocol.types import Epoch, Offset

INT16 = st.integers(-(2**15), 2**15 - 1)
INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)

HEADERS = st.builds(
    BatchHeader,
    base_offset=st.integers(0, 2**63 - 1).map(Offset),
    batch_length=st.integers(HEADER_BYTES - 12, 2**31 - 1),
    partition_leader_epoch=INT32.map(Epoch),
    magic=st.just(2),
    crc=st.integers(0, 2**32 - 1),
    attributes=st.builds(
        lambda high, codec: high << 3 | codec, INT16.map(lambda x: x >> 3), st.integers(0, 4)
    ),
    last_offset_delta=st.integers(0, 2**31 - 1),
    base_timestamp=INT64,
    max_timestamp=INT64,
    producer_id=INT64,
    producer_epoch=INT16,
    base_sequence=INT32,
    record_count=st.integers(0, 2**31 - 1),
)

BATCH = encode_batch([Record(value=b"a", timestamp_ms=5), Record(value=b"b", timestamp_ms=9)])


@given(header=HEADERS)
def test_struct_and_construct_agree_on_the_layout(header: BatchHeader) -> None:
    built = HEADER.build(header._asdict())
    assert len(built) == HEADER_BYTES == HEADER.sizeof()
    assert pack_header(header) == built
    assert read_header(built) == header


@given(data=st.binary(min_size=HEADER_BYTES, max_size=HEADER_BYTES))
def test_any_61_bytes_are_a_header_or_corrupt(data: bytes) -> None:
    data = data[:16] + b"\x02" + data[17:]
    try:
        header = read_header(data)
    except CorruptBatch:
        return
    assert pack_header(header) == data
    assert header.compression in Compression


@pytest.mark.parametrize("length", [0, 1, 16, 17, 60])
def test_a_header_that_is_cut_off_is_corrupt(length: int) -> None:
    with pytest.raises(CorruptBatch):
        read_header(BATCH[:length])


@pytest.mark.parametrize("length", [-1, 0, 48])
def test_a_length_that_cannot_hold_the_header_is_corrupt(length: int) -> None:
    with pytest.raises(CorruptBatch, match=f"length is {length}"):
        read_header(pack_header(read_header(BATCH)._replace(batch_length=length)))


@pytest.mark.parametrize("field", ["record_count", "last_offset_delta", "base_offset"])
def test_a_header_with_a_negative_count_is_corrupt(field: str) -> None:
    with pytest.raises(CorruptBatch):
        read_header(HEADER.build(read_header(BATCH)._asdict() | {field: -1}))


def test_an_unknown_codec_is_corrupt() -> None:
    with pytest.raises(CorruptBatch, match="codec is 5"):
        read_header(pack_header(read_header(BATCH)._replace(attributes=5)))


@pytest.mark.parametrize("magic", [0, 1, 3])
def test_p6_older_formats_are_told_from_corruption(magic: int) -> None:
    old = bytearray(BATCH[:34])
    old[16] = magic
    for data in (old, old + BATCH[34:]):
        with pytest.raises(UnsupportedMagic) as caught:
            read_header(data)
        assert caught.value.magic == magic


@given(at=st.integers(17, len(BATCH) - 1), bit=st.integers(0, 7))
def test_a_flipped_bit_from_the_crc_on_is_noticed(at: int, bit: int) -> None:
    flipped = bytearray(BATCH)
    flipped[at] ^= 1 << bit
    with pytest.raises(CorruptBatch):
        check_batch(flipped)


def test_a_batch_that_is_cut_off_is_corrupt() -> None:
    with pytest.raises(CorruptBatch, match="are there"):
        check_batch(BATCH[:-1])


@pytest.mark.parametrize("counts", [(0, 0), (0, 1), (3, 1), (1, 2)], ids=str)
def test_a_producers_batch_has_as_many_offsets_as_records(counts: tuple[int, int]) -> None:
    count, delta = counts
    data = bytearray(BATCH)
    struct.pack_into(">i", data, 57, count)
    struct.pack_into(">i", data, 23, delta)
    place_log_append_time(data, 0, 7)
    with pytest.raises(CorruptBatch, match="offsets up to"):
        check_batch(data)


def test_p7_placing_a_batch_leaves_its_crc_right() -> None:
    data = bytearray(b"before" + BATCH)
    place(data, 6, base_offset=Offset(1 << 40), epoch=Epoch(7))
    header = check_batch(data, 6)
    assert (header.base_offset, header.partition_leader_epoch) == (1 << 40, 7)
    assert header.crc == read_header(BATCH).crc
    assert (header.last_offset, header.next_offset) == ((1 << 40) + 1, (1 << 40) + 2)


def test_p7_log_append_time_is_every_records_time_and_the_crc_is_new() -> None:
    data = bytearray(BATCH)
    place_log_append_time(data, 0, 123)
    header = check_batch(data)
    assert header.is_log_append_time
    assert header.max_timestamp == 123
    assert header.crc != read_header(BATCH).crc
    assert [record.timestamp_ms for record in decode_records(data)] == [123, 123]


@given(cut=st.integers(0, 3 * len(BATCH)))
def test_batches_back_to_back_are_found_and_a_cut_one_is_left_out(cut: int) -> None:
    found = list(iter_headers((BATCH * 3)[:cut]))
    assert [at for at, _ in found] == [i * len(BATCH) for i in range(cut // len(BATCH))]
    for at, header in found:
        check_crc(BATCH * 3, header, at)


def test_sequences_wrap_after_the_largest_int32() -> None:
    header = read_header(BATCH)._replace(base_sequence=2**31 - 1, last_offset_delta=2)
    assert header.last_sequence == 1
    assert header._replace(base_sequence=-1).last_sequence == -1


def test_the_attribute_bits_have_names() -> None:
    header = read_header(encode_batch([Record()], is_transactional=True, is_control=True))
    assert (header.is_transactional, header.is_control) == (True, True)
    assert header.attributes == 0x30
    assert not header.is_log_append_time
