"""Slices of a buffer as Arrow arrays."""

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.protocol.buffers import Buffers
from tidemark.protocol.records.columns.cursor import HeaderSlices, Slices, Table
from tidemark.protocol.records.columns.schema import HEADERS_TYPE
from tidemark.protocol.records.columns.varints import Integers

_RUN_MIN: Final = 32
"""Records; a copy with a stride costs a microsecond or two before it begins."""


def binary_array(
    buffer: pa.Buffer, slices: Slices, memory: Buffers | None = None
) -> pa.BinaryArray:
    """The byte strings, copied out of `buffer` by Arrow, or into `memory`.

    A binary array is offsets into a buffer, so the slices and the gaps between them are one without
    any copy: every second element. `take` then makes a compact array of those.
    """
    count = len(slices.starts)
    if not count or (longest := int(slices.lengths.max())) < 0:
        return pa.nulls(count, pa.binary())
    if longest and longest == slices.lengths.min():
        return _of_one_length(buffer, slices, longest, memory)
    nulls = slices.lengths < 0
    has_nulls = nulls.any()
    lengths = np.maximum(slices.lengths, 0) if has_nulls else slices.lengths
    bounds = np.empty(2 * count + 1, np.int32)
    bounds[0:-1:2] = slices.starts
    np.add(slices.starts, lengths, out=bounds[1::2], casting="unsafe")
    bounds[-1] = bounds[-2]
    gapped = pa.BinaryArray.from_buffers(
        pa.binary(), 2 * count, [None, pa.py_buffer(bounds), buffer]
    )
    indices = pa.array(np.arange(0, 2 * count, 2, dtype=np.int32))
    compact = pc.take(gapped, indices, boundscheck=False)
    if not has_nulls:
        return compact
    _, offsets, data = compact.buffers()
    return pa.BinaryArray.from_buffers(pa.binary(), count, [_validity(~nulls), offsets, data])


def _of_one_length(
    buffer: pa.Buffer, slices: Slices, length: int, memory: Buffers | None
) -> pa.BinaryArray:
    """The same for byte strings of one length, as elements of that size: in half the time."""
    starts = slices.starts
    offsets = np.arange(0, len(starts) * length + 1, length, dtype=np.int32)
    if slices.tables:
        data = _copied_from_tables(slices.tables, len(starts), memory)
    else:
        data = _copied_elements(buffer, starts, length, memory)
    return pa.BinaryArray.from_buffers(
        pa.binary(), len(starts), [None, pa.py_buffer(offsets), data]
    )


def _copied_from_tables(tables: Sequence[Table], count: int, memory: Buffers | None) -> pa.Buffer:
    """All strings of the tables, of one length, into `memory` or new memory."""
    dtype = tables[0].elements.dtype
    if memory is None:
        copied = np.empty(count, dtype)
    else:
        copied = np.frombuffer(memory.take(count * dtype.itemsize), dtype)
    for elements, part_of in tables:
        part_of(copied)[:] = elements
    return pa.py_buffer(copied)


def _copied_elements(
    buffer: pa.Buffer, starts: Integers, length: int, memory: Buffers | None
) -> pa.Buffer:
    """The strings at `starts`, into `memory` if they lie in long runs."""
    elements = np.ndarray((buffer.size - length + 1,), f"V{length}", buffer=buffer, strides=(1,))
    data = None if memory is None else _copied_in_runs(elements, starts, memory)
    return pa.py_buffer(elements[starts]) if data is None else data


def _copied_in_runs(elements: np.ndarray, starts: Integers, memory: Buffers) -> pa.Buffer | None:
    """The elements at `starts`, into memory that may have been used before.

    numpy looks elements up into new memory only. But where records have one length, so have the
    gaps between them, and a run of such is a copy with a stride. None if the runs are too short.
    """
    gaps = np.diff(starts)
    ends = np.flatnonzero(gaps[1:] != gaps[:-1]) + 2  # a gap may be that to the next run
    if len(ends) * _RUN_MIN > len(starts):
        return None
    view = memory.take(len(starts) * elements.itemsize)
    copied = np.frombuffer(view, elements.dtype)
    begin = 0
    for end in [*ends.tolist(), len(starts)]:
        if begin < end:
            stride = int(gaps[begin]) if end - begin > 1 else 1
            first = int(starts[begin])
            copied[begin:end] = elements[first : first + (end - begin - 1) * stride + 1 : stride]
            begin = end
    return pa.py_buffer(view)


def headers_array(buffer: pa.Buffer, headers: HeaderSlices) -> pa.ListArray:
    """Raises `ValueError` for a key that is not UTF-8."""
    count = len(headers.counts)
    offsets = np.zeros(count + 1, np.int32)
    pairs = _NO_HEADERS
    if len(headers.keys.starts):
        np.cumsum(headers.counts, out=offsets[1:])
        pairs = pa.StructArray.from_arrays(
            [
                binary_array(buffer, headers.keys).cast(pa.string()),
                binary_array(buffer, headers.values),
            ],
            fields=list(HEADERS_TYPE.value_type),
        )
    return pa.Array.from_buffers(
        HEADERS_TYPE, count, [None, pa.py_buffer(offsets)], children=[pairs]
    )


_NO_HEADERS: Final = pa.array([], HEADERS_TYPE.value_type)


def _validity(valid: np.ndarray) -> pa.Buffer:
    return pa.py_buffer(np.packbits(valid, bitorder="little"))


def timestamps_array(milliseconds: Integers) -> pa.TimestampArray:
    return pa.array(milliseconds).view(pa.timestamp("ms", tz="UTC"))
