"""Arrow columns to a record batch, without a Python object per record.

What stands before a key, a value or the headers is a few varints: they are put together in integers
for all records at once. Arrow's element-wise join then interleaves them with keys and values, and
the data of the array it makes is the records section.
"""

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.protocol.records.columns.pack import (
    Field,
    interleave,
    join_fields,
    offset_field,
    rows_of,
    varint_field,
)
from tidemark.protocol.records.columns.varints import Integers, Unusual
from tidemark.protocol.records.compression import Compression, compress
from tidemark.protocol.records.header import TRANSACTIONAL_BIT, BatchHeader, build_batch
from tidemark.protocol.records.records import Record, encode_section
from tidemark.protocol.types import NO_EPOCH, NO_TIMESTAMP_MS, BytesLike, Epoch, Offset

_FIRST: Final = Offset(0)
_NOTHING: Final = pa.scalar(b"")
_NO_HEADERS: Final = pa.scalar(b"\x00")
_BINARY_TYPES: Final = (
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_binary_view,
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_string_view,
)


def encode_columns(
    columns: pa.RecordBatch,
    *,
    base_offset: Offset = _FIRST,
    epoch: Epoch = NO_EPOCH,
    compression: Compression = Compression.NONE,
    level: int | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    is_transactional: bool = False,
    timestamp_ms: int = NO_TIMESTAMP_MS,
) -> bytes:
    """One batch with a record for each row, at `base_offset` and after.

    Of the columns, all optional: `key` and `value` are binary or strings; `headers` lists of
    structs (key, value); `timestamp` a timestamp, of which less than a millisecond is dropped, or
    an integer of milliseconds. `timestamp_ms` is for rows without one. Others do not count.

    `columns` must not be empty. Raises `ValueError` for a type that does not fit, a header without
    a key, and more than 2 GiB of records.
    """
    assert columns.num_rows
    timestamps = _timestamps(columns, timestamp_ms)
    section: BytesLike
    try:
        section = _encode_rows(columns, timestamps - timestamps[0])
    except Unusual:
        section = _encode_plainly(columns, timestamps)
    return build_batch(
        compress(compression, section, level),
        BatchHeader.open(
            base_offset=base_offset,
            epoch=epoch,
            attributes=compression | (TRANSACTIONAL_BIT if is_transactional else 0),
            base_timestamp=int(timestamps[0]),
            max_timestamp=int(timestamps.max()),
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            record_count=columns.num_rows,
        ),
    )


def _encode_rows(columns: pa.RecordBatch, timestamp_deltas: Integers) -> memoryview:
    """The records section. Raises `Unusual` if its varints are longer than they usually are."""
    count = columns.num_rows
    keys, values = _binary(columns, "key"), _binary(columns, "value")
    key_lengths, value_lengths = _lengths(keys, count), _lengths(values, count)
    headers, headers_sizes = _headers(columns)
    timestamp = varint_field(timestamp_deltas)
    offset = offset_field(count)
    key, value = varint_field(key_lengths), varint_field(value_lengths)
    lengths = 1 + timestamp.sizes + offset.sizes + key.sizes + value.sizes + headers_sizes
    for sizes in (key_lengths, value_lengths):
        lengths += np.maximum(sizes, 0)
    length = varint_field(lengths)
    attributes_too = Field(length.lanes, length.sizes + 1)  # a zero byte, as the lane has it
    parts: list[pa.Array | pa.Scalar]
    if keys is None:
        rows = rows_of(join_fields(attributes_too, timestamp, offset, key, value))
        size = int(value_lengths[0])
        if values is not None and headers is _NO_HEADERS and (value_lengths == size).all():
            return interleave(rows, values, size)
        parts = [rows.as_binary()]
    else:
        before_key = rows_of(join_fields(attributes_too, timestamp, offset, key)).as_binary()
        parts = [before_key, keys.fill_null(b""), rows_of([value]).as_binary()]
    if values is not None:
        parts.append(values.fill_null(b""))
    joined = pc.binary_join_element_wise(*parts, headers, _NOTHING)
    _, offsets, data = joined.buffers()
    end = int(np.frombuffer(offsets, np.int32)[joined.offset + count])
    return memoryview(data)[:end]


def _timestamps(columns: pa.RecordBatch, default_ms: int) -> Integers:
    if "timestamp" not in columns.schema.names:
        return np.full(columns.num_rows, default_ms, np.int64)
    column = columns["timestamp"]
    if pa.types.is_timestamp(column.type):
        if column.type.unit != "ms":
            column = column.cast(pa.timestamp("ms", tz=column.type.tz), safe=False)
        column = column.view(pa.int64())
    if column.null_count:
        column = column.fill_null(default_ms)
    milliseconds: Integers = column.cast(pa.int64()).to_numpy()
    return milliseconds


def _binary(columns: pa.RecordBatch, name: str) -> pa.BinaryArray | None:
    """The column with this name; None if there is none, or all of it is null."""
    if name not in columns.schema.names:
        return None
    column = columns[name]
    if column.null_count == len(column):
        return None
    if not any(is_one(column.type) for is_one in _BINARY_TYPES):
        raise ValueError(f"the column {name} is {column.type}, not binary and not a string")
    return column.cast(pa.binary())


def _lengths(array: pa.BinaryArray | None, count: int) -> Integers:
    """The length of each element, -1 for a null."""
    if array is None:
        return np.full(count, -1, np.int64)
    offsets = np.frombuffer(array.buffers()[1], np.int32, count + 1, array.offset * 4)
    lengths = np.diff(offsets).astype(np.int64)
    if array.null_count:
        lengths[array.is_null().to_numpy(zero_copy_only=False)] = -1
    return lengths


def _headers(columns: pa.RecordBatch) -> tuple[pa.Array | pa.Scalar, Integers]:
    """The headers of each record as they are encoded, and how many bytes that is."""
    none = _NO_HEADERS, np.ones(columns.num_rows, np.int64)
    if "headers" not in columns.schema.names:
        return none
    column = columns["headers"]
    pairs = column.flatten()
    if not len(pairs):
        return none
    named = pa.record_batch(pairs.flatten(), names=["key", "value"])
    if named["key"].null_count:
        raise ValueError("a header without a key")
    parts: list[pa.Array] = []
    for name in named.schema.names:
        array = named[name].cast(pa.binary())
        parts += [
            rows_of([varint_field(_lengths(array, len(pairs)))]).as_binary(),
            array.fill_null(b""),
        ]
    encoded = pc.binary_join_element_wise(*parts, _NOTHING)
    counts = pc.list_value_length(column).fill_null(0).to_numpy().astype(np.int64)
    bounds = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    per_record = pc.binary_join(pa.ListArray.from_arrays(pa.array(bounds), encoded), b"")
    all_of_it = pc.binary_join_element_wise(
        rows_of([varint_field(counts)]).as_binary(), per_record, _NOTHING
    )
    return all_of_it, _lengths(all_of_it, columns.num_rows)


def _encode_plainly(columns: pa.RecordBatch, timestamps: Integers) -> bytes:
    keys, values = _binary(columns, "key"), _binary(columns, "value")
    records = [
        Record(
            timestamp_ms=timestamp,
            key=None if keys is None else keys[row].as_py(),
            value=None if values is None else values[row].as_py(),
            headers=_header_pairs(columns, row),
        )
        for row, timestamp in enumerate(timestamps.tolist())
    ]
    return encode_section(records, base_timestamp=records[0].timestamp_ms)


def _header_pairs(columns: pa.RecordBatch, row: int) -> tuple[tuple[str, bytes | None], ...]:
    if "headers" not in columns.schema.names:
        return ()
    return tuple(
        (header["key"], header["value"]) for header in columns["headers"][row].as_py() or ()
    )
