"""The columns of a buffer of records, each field of all records read at once."""

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from tidemark.protocol.buffers import Buffers
from tidemark.protocol.records.columns.arrays import (
    binary_array,
    headers_array,
    timestamps_array,
)
from tidemark.protocol.records.columns.cursor import Cursor
from tidemark.protocol.records.columns.grids import Grids, Uneven
from tidemark.protocol.records.columns.scan import find_starts
from tidemark.protocol.records.columns.sections import Section
from tidemark.protocol.records.columns.varints import Integers, Unusual, VarintReader
from tidemark.protocol.records.header import LOG_APPEND_TIME_BIT
from tidemark.protocol.types import BytesLike, Offset

_FAR: Final = 1 << 62
"""Beyond this an offset or a time could overflow when its delta is added."""


def read_columns(
    data: BytesLike,
    sections: Sequence[Section],
    schema: pa.Schema,
    *,
    start: Offset | None,
    end: Offset | None,
    memory: Buffers | None = None,
) -> pa.RecordBatch:
    """The columns of `schema`, of the records with offsets in [start, end).

    Raises `Unusual`, `IndexError` or `ValueError` if anything about the bytes is wrong or rare.
    """
    reader = VarintReader(np.frombuffer(data, np.uint8))
    try:
        return _read(Grids(reader, sections), data, sections, schema, start, end, memory)
    except Uneven:
        cursor = _find_records(reader, sections)
        return _read(cursor, data, sections, schema, start, end, memory)


def _read(
    cursor: Cursor | Grids,
    data: BytesLike,
    sections: Sequence[Section],
    schema: pa.Schema,
    start: Offset | None,
    end: Offset | None,
    memory: Buffers | None,
) -> pa.RecordBatch:
    numbers = _read_numbers(cursor, sections)
    keep = _in_range(numbers["offset"], start, end)
    if keep is not None:
        numbers = {name: column[keep] for name, column in numbers.items()}
        cursor = cursor.kept(keep)
    columns = {
        "offset": pa.array(numbers["offset"]),
        "timestamp": timestamps_array(numbers["timestamp"]),
        "timestamp_type": pa.array(numbers["timestamp_type"]),
        **_read_bytes(cursor, pa.py_buffer(data), frozenset(schema.names), memory),
    }
    return pa.record_batch([columns[name] for name in schema.names], schema=schema)


def _find_records(reader: VarintReader, sections: Sequence[Section]) -> Cursor:
    """Where their fields begin: after the attributes, a byte of which no bit is in use."""
    starts = find_starts(reader.data, sections)
    ends = np.empty_like(starts.positions)
    ends[:-1] = starts.positions[1:]
    ends[np.cumsum([section.header.record_count for section in sections]) - 1] = [
        section.end for section in sections
    ]
    if starts.is_measured:
        return Cursor(reader, starts.bodies + 1, ends)
    lengths, bodies = reader.read(starts.positions)
    if (bodies + lengths != ends).any():
        raise ValueError("a record's length is not the distance to the next")
    return Cursor(reader, bodies + 1, ends)


def _read_numbers(cursor: Cursor | Grids, sections: Sequence[Section]) -> dict[str, np.ndarray]:
    # Field by field: there may be hundreds of batches, and to ask each by name takes longer.
    base_offsets, _, _, _, _, attributes, last_deltas, base_times, max_times, _, _, _, counts = zip(
        *(section.header for section in sections), strict=True
    )
    if max(base_offsets) > _FAR or max(base_times) > _FAR or min(base_times) < -_FAR:
        raise Unusual

    def spread(values: Sequence[int]) -> Integers:
        """The value of each record's batch."""
        if len(values) == 1:
            return np.array(values, np.int64)  # numpy spreads one by itself
        return np.repeat(np.array(values, np.int64), counts)

    timestamps = cursor.varints()
    timestamps += spread(base_times)
    types = np.zeros(len(timestamps), np.int32)
    of_broker = [bool(each & LOG_APPEND_TIME_BIT) for each in attributes]
    if any(of_broker):
        types |= spread(of_broker)
        timestamps = np.where(types, spread(max_times), timestamps)
    offsets = cursor.varints()
    if offsets.min() < 0 or (offsets > spread(last_deltas)).any():
        raise ValueError("an offset beyond its batch's last")
    offsets += spread(base_offsets)
    return {"offset": offsets, "timestamp": timestamps, "timestamp_type": types}


def _in_range(offsets: Integers, start: Offset | None, end: Offset | None) -> np.ndarray | None:
    """Which records to keep; None for all of them."""
    if (start is None or offsets.min() >= start) and (end is None or offsets.max() < end):
        return None
    keep = np.ones(len(offsets), bool)
    if start is not None:
        keep &= offsets >= start
    if end is not None:
        keep &= offsets < end
    return keep


def _read_bytes(
    cursor: Cursor | Grids, buffer: pa.Buffer, names: frozenset[str], memory: Buffers | None
) -> dict[str, pa.Array]:
    """Keys, values and headers, as far into the records as `names` needs."""
    columns: dict[str, pa.Array] = {}
    if not names.isdisjoint(("key", "value", "headers")):
        keys = cursor.slices()
        if "key" in names:
            columns["key"] = binary_array(buffer, keys)
    if not names.isdisjoint(("value", "headers")):
        values = cursor.slices()
        if "value" in names:
            columns["value"] = binary_array(buffer, values, memory)
    if "headers" in names:
        columns["headers"] = headers_array(buffer, cursor.headers())
    return columns
