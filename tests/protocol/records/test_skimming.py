"""What is seen of records in passing is what they have when they are decoded."""

import struct
from contextlib import suppress
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.protocol.records.strategies import CODECS, RECORDS
from tidemark.protocol.errors import CorruptBatch
from tidemark.protocol.records.compression import Compression
from tidemark.protocol.records.header import check_batch, read_header, seal
from tidemark.protocol.records.records import Record, decode_batch, encode_batch
from tidemark.protocol.records.skimming import keyless, times
from tidemark.protocol.types import Offset

CHANGES = st.lists(st.tuples(st.integers(0, 1 << 12), st.integers(0, 255)), max_size=4)


@given(records=RECORDS, codec=CODECS, is_append_time=st.booleans())
def test_keys_and_times_are_those_of_the_records(
    records: list[Record], codec: Compression, is_append_time: bool
) -> None:
    batch = b"before" + encode_batch(
        records, base_offset=Offset(70), compression=codec, is_log_append_time=is_append_time
    )
    header = check_batch(memoryview(batch)[6:])
    decoded = decode_batch(batch, header, 6)
    assert keyless(batch, header, 6) == [i for i, r in enumerate(decoded) if r.key is None]
    assert list(times(batch, header, 6)) == [(r.timestamp_ms, r.offset) for r in decoded]


@given(records=RECORDS, changes=CHANGES, cut=st.integers(0, 40))
def test_who_looks_for_keys_refuses_what_is_refused_when_it_is_decoded(
    records: list[Record], changes: list[tuple[int, int]], cut: int
) -> None:
    batch = bytearray(encode_batch(records))
    for at, byte in changes:
        batch[61 + at % (len(batch) - 61)] = byte
    del batch[max(61, len(batch) - cut) :]
    struct.pack_into(">i", batch, 8, len(batch) - 12)
    seal(batch, 0)
    header = read_header(batch)
    try:
        decoded = decode_batch(batch, header)
    except CorruptBatch:
        with pytest.raises(CorruptBatch):
            keyless(batch, header)
    else:
        assert keyless(batch, header) == [i for i, r in enumerate(decoded) if r.key is None]
        if all(-(2**63) <= r.timestamp_ms < 2**63 for r in decoded):
            assert list(times(batch, header)) == [(r.timestamp_ms, r.offset) for r in decoded]


@given(data=st.binary(max_size=200), count=st.integers(1, 40))
def test_garbage_is_corrupt_or_has_keys_and_times(data: bytes, count: int) -> None:
    batch = bytearray(encode_batch([Record(key=b"k")])[:61] + data)
    struct.pack_into(">i", batch, 8, len(batch) - 12)
    struct.pack_into(">i", batch, 57, count)
    seal(batch, 0)
    header = read_header(batch)
    for look in (keyless, lambda *batch: list(times(*batch))):
        with suppress(CorruptBatch):
            look(batch, header)


def test_times_are_looked_at_only_as_far_as_they_are_asked_for() -> None:
    batch = bytearray(encode_batch([Record(timestamp_ms=number) for number in range(4)]))
    batch[-7] = 0x7F  # the last record's length
    seal(batch, 0)
    found = times(batch, read_header(batch))
    assert list(islice(found, 3)) == [(0, 0), (1, 1), (2, 2)]
    with pytest.raises(CorruptBatch):
        next(found)
