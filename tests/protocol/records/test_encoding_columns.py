"""Batches of columns are the batches of their records."""

from contextlib import suppress
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.protocol.records.column_batches import columns_of
from tests.protocol.records.strategies import CODECS, RECORDS
from tidemark.protocol.errors import CorruptBatch
from tidemark.protocol.records.columns import SCHEMA, decode_columns, encode_columns
from tidemark.protocol.records.header import (
    seal,
)
from tidemark.protocol.records.records import (
    Record,
    decode_records,
    encode_batch,
)
from tidemark.protocol.types import Offset

ENCODINGS = st.fixed_dictionaries(
    {
        "compression": CODECS,
        "base_offset": st.integers(0, 2**40).map(Offset),
        "producer_id": st.integers(-1, 100),
        "base_sequence": st.integers(-1, 100),
        "is_transactional": st.booleans(),
    }
)


@given(records=RECORDS, how=ENCODINGS)
def test_a_batch_of_columns_is_the_batch_of_their_records(
    records: list[Record], how: dict[str, Any]
) -> None:
    assert encode_columns(columns_of(records), **how) == encode_batch(records, **how)


@given(
    sizes=st.lists(st.sampled_from([0, 1, 63, 64, 5000, 9000]), min_size=1, max_size=8),
    times=st.lists(st.sampled_from([0, 1, 64, 8192, 2**27, 2**40, 2**56]), min_size=8, max_size=8),
    repeats=st.sampled_from([1, 40]),
)
def test_a_batch_of_columns_of_all_sizes_is_the_batch_of_their_records(
    sizes: list[int], times: list[int], repeats: int
) -> None:
    records = [
        Record(timestamp_ms=time, key=b"k" * (size % 70), value=b"v" * size)
        for size, time in zip(sizes, times, strict=False)
    ] * repeats
    for some in (records, [record._replace(key=None) for record in records]):
        assert encode_columns(columns_of(some)) == encode_batch(some)


def test_offsets_in_a_batch_of_columns_may_take_three_bytes() -> None:
    records = [Record(value=b"")] * 8300
    assert encode_columns(columns_of(records)) == encode_batch(records)


@given(records=RECORDS, cut=st.integers(0, 7))
def test_a_slice_of_columns_is_a_batch_of_that_slice(records: list[Record], cut: int) -> None:
    kept = records[cut:] or records
    sliced = columns_of(records)[len(records) - len(kept) :]
    assert encode_columns(sliced) == encode_batch(kept)


def test_columns_that_are_not_there_are_null() -> None:
    only = pa.record_batch({"value": pa.array(["ä", None])})
    assert encode_columns(only, timestamp_ms=5) == encode_batch(
        [Record(value="ä".encode(), timestamp_ms=5), Record(timestamp_ms=5)]
    )
    keys = pa.record_batch({"key": pa.array([b"a", b""], pa.large_binary())})
    assert encode_columns(keys) == encode_batch([Record(key=b"a"), Record(key=b"")])


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (pa.array([1500, None], pa.timestamp("us", tz="Europe/Berlin")), [1, 9]),
        (pa.array([7, None], pa.int64()), [7, 9]),
        (pa.array([7, 8], pa.timestamp("s")), [7000, 8000]),
    ],
    ids=str,
)
def test_times_come_in_any_unit(array: pa.Array, expected: list[int]) -> None:
    batch = encode_columns(pa.record_batch({"timestamp": array}), timestamp_ms=9)
    assert [record.timestamp_ms for record in decode_records(batch)] == expected


def test_a_list_of_headers_that_is_null_is_none_of_them() -> None:
    headers = pa.array([[{"key": "a", "value": None}], None, []], SCHEMA.field("headers").type)
    batch = encode_columns(pa.record_batch({"headers": headers}))
    assert [record.headers for record in decode_records(batch)] == [(("a", None),), (), ()]


def test_a_header_without_a_key_is_refused() -> None:
    headers = pa.array([[{"key": None, "value": b""}]], SCHEMA.field("headers").type)
    with pytest.raises(ValueError, match="without a key"):
        encode_columns(pa.record_batch({"headers": headers}))


def test_a_column_of_another_type_is_refused() -> None:
    with pytest.raises(ValueError, match="binary"):
        encode_columns(pa.record_batch({"value": pa.array([1.5])}))


@pytest.mark.parametrize("length", [0, 1, 2, 5, 15, 16, 17, 100, 9000])
@pytest.mark.parametrize("count", [1, 2, 100])
def test_values_of_one_length_make_the_batch_of_their_records(length: int, count: int) -> None:
    records = [
        Record(value=bytes([n % 256]) * length, timestamp_ms=n * 300) for n in range(count + 3)
    ]
    assert encode_columns(columns_of(records)) == encode_batch(records)
    assert encode_columns(columns_of(records)[3:]) == encode_batch(records[3:])
    assert decode_columns(encode_batch(records)).equals(
        columns_of(decode_records(encode_batch(records)))
    )


@pytest.mark.parametrize("names", [["key"], ["value"], ["key", "headers"]], ids=str)
@pytest.mark.parametrize("count", [1, 40])
def test_a_length_beyond_its_record_reads_nothing_from_there(names: list[str], count: int) -> None:
    batch = bytearray(encode_batch([Record(key=b"k" * 9, value=b"v" * 9)] * count))
    for marker in (b"k" * 9, b"v" * 9):
        at = batch.index(marker)
        wrong = bytearray(batch)
        wrong[at - 1] = 126  # 63 bytes
        seal(wrong, 0)
        with suppress(CorruptBatch):
            columns = decode_columns(wrong, columns=names)
            assert all(len(value.as_py() or b"") <= 9 for value in columns[names[0]])
