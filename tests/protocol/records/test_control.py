"""Markers of transactions: Kafka's bytes, and nothing else is one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.protocol.errors import CorruptBatch
from tidemark.protocol.records.control import Marker, encode_marker, read_marker
from tidemark.protocol.records.header import HEADER_BYTES, read_header
from tidemark.protocol.records.records import Record, decode_batch, decode_records, encode_batch
from tidemark.protocol.types import ProducerId


@given(st.booleans(), st.integers(-1, 2**31 - 1), st.integers(0, 2**15 - 1))
def test_a_marker_is_read_as_it_was_written(
    is_commit: bool, coordinator_epoch: int, producer_epoch: int
) -> None:
    marker = Marker(is_commit, coordinator_epoch)
    batch = encode_marker(ProducerId(5), producer_epoch, marker, timestamp_ms=9)
    header = read_header(batch)
    assert read_marker(batch, header) == marker
    assert (header.producer_id, header.producer_epoch) == (5, producer_epoch)


def test_trap_f13_a_marker_has_kafkas_bytes() -> None:
    batch = encode_marker(
        ProducerId(5), 3, Marker(is_commit=True, coordinator_epoch=7), timestamp_ms=9
    )
    header = read_header(batch)
    assert (header.attributes, header.base_sequence, header.record_count) == (0x30, -1, 1)
    (record,) = decode_batch(batch, header)
    assert record.key == bytes.fromhex("00000001")
    assert record.value == bytes.fromhex("000000000007")


def test_a_marker_is_no_record_of_an_application() -> None:
    assert decode_records(encode_marker(ProducerId(5), 3, Marker(False, 7), timestamp_ms=9)) == []


def control(key: bytes | None, value: bytes | None = None) -> bytes:
    return encode_batch([Record(key=key, value=value)], producer_id=1, is_control=True)


def test_other_kinds_of_control_records_are_passed_over() -> None:
    batch = control(bytes.fromhex("00000002"))
    assert read_marker(batch, read_header(batch)) is None


@pytest.mark.parametrize(
    ("key", "value"), [(None, None), (b"\0\0", None), (bytes(4), None), (bytes(4), bytes(5))]
)
def test_what_is_cut_off_is_no_marker(key: bytes | None, value: bytes | None) -> None:
    batch = control(key, value)
    with pytest.raises(CorruptBatch, match="without a marker"):
        read_marker(batch, read_header(batch))


def test_a_marker_with_another_bit_is_corrupt() -> None:
    """The outcome is one bit: nobody may take an abort for a commit."""
    batch = bytearray(encode_marker(ProducerId(5), 3, Marker(False, 7), timestamp_ms=9))
    batch[batch.index(bytes(4), HEADER_BYTES) + 3] ^= 1
    with pytest.raises(CorruptBatch, match="CRC"):
        read_marker(batch, read_header(batch))
