"""Varints written by the thousand, and short byte strings put together of them.

A field is an array of uint64 lanes, each with the bytes of one record's field, the first one
lowest, and how many of them count.
"""

from collections.abc import Sequence
from functools import cache
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidemark.protocol.records.columns.arrays import binary_array
from tidemark.protocol.records.columns.cursor import Slices
from tidemark.protocol.records.columns.varints import Integers, Unusual
from tidemark.protocol.values import dataclass

_Lanes: TypeAlias = NDArray[np.uint64]

_LANE_BYTES: Final = 8
_VARINT_BITS_MAX: Final = 7 * _LANE_BYTES
_LANES_MAX: Final = 2
_OFFSETS_KEPT: Final = 1 << 14
_ROW_BYTES: Final = _LANES_MAX * _LANE_BYTES


@dataclass(frozen=True, slots=True)
class Field:
    """At most eight bytes for each record. Invariant: lanes are 0 beyond their size."""

    lanes: _Lanes
    sizes: Integers


def varint_field(values: Integers) -> Field:
    """Raises `Unusual` for a value that takes more than eight bytes."""
    if len(values) > 1 and (values == values[0]).all():
        one = varint_field(values[:1])
        shape = values.shape
        return Field(np.broadcast_to(one.lanes, shape), np.broadcast_to(one.sizes, shape))
    zigzag = ((values << 1) ^ (values >> 63)).view(np.uint64)
    sizes = np.ones(len(values), np.int64)
    bits = int(zigzag.max(initial=0)).bit_length()
    if bits > _VARINT_BITS_MAX:
        raise Unusual
    for threshold in range(7, bits, 7):
        sizes += zigzag >= np.uint64(1 << threshold)
    if bits <= 7:
        return Field(zigzag, sizes)
    # Make room for a high bit above every seven: between fours of sevens, pairs, and single ones.
    lanes = zigzag
    if bits > 28:
        lanes = (lanes & _EVEN_28) | ((lanes & _ODD_28) << _4)
    if bits > 14:
        lanes = (lanes & _EVEN_14) | ((lanes & _ODD_14) << _2)
    lanes = (lanes & _EVEN_7) | ((lanes & _ODD_7) << _1)
    return Field(lanes | _GOES_ON[sizes], sizes)


def offset_field(count: int) -> Field:
    """The offset deltas of a batch, which are the same in every batch."""
    if count > _OFFSETS_KEPT:
        return varint_field(np.arange(count, dtype=np.int64))
    kept = _kept_offsets()
    return Field(kept.lanes[:count], kept.sizes[:count])


@cache
def _kept_offsets() -> Field:
    return varint_field(np.arange(_OFFSETS_KEPT, dtype=np.int64))


def join_fields(first: Field, *others: Field) -> list[Field]:
    """The fields one after another, in as few lanes as they fit in."""
    joined = [first]
    for field in others:
        sizes = joined[-1].sizes + field.sizes
        if sizes.max(initial=0) > _LANE_BYTES:
            joined.append(field)
            continue
        shifted = field.lanes << (joined[-1].sizes << 3).view(np.uint64)
        joined[-1] = Field(joined[-1].lanes | shifted, sizes)
    return joined


@dataclass(frozen=True, slots=True)
class Rows:
    """At most 16 bytes for each record, in rows of two lanes. Invariant: 0 beyond their size."""

    lanes: _Lanes
    sizes: Integers

    def as_binary(self) -> pa.BinaryArray:
        starts = np.arange(0, self.lanes.nbytes, self.lanes.strides[0], dtype=np.int64)
        return binary_array(pa.py_buffer(self.lanes), Slices(starts, self.sizes))


def rows_of(fields: Sequence[Field]) -> Rows:
    """The fields of each record behind each other.

    Raises `Unusual` for more than two fields: 16 bytes a record is all that is usual.
    """
    if len(fields) > _LANES_MAX:
        raise Unusual
    count = len(fields[0].lanes)
    rows = np.zeros((count, _LANES_MAX), np.uint64)
    rows[:, 0], sizes = fields[0].lanes, fields[0].sizes
    if len(fields) == _LANES_MAX:
        # The second follows where the first ends. numpy's shifts by 64 and more give 0.
        bits = (sizes << 3).view(np.uint64)
        rows[:, 0] |= fields[1].lanes << bits
        rows[:, 1] = fields[1].lanes >> (_64 - bits)
        sizes = sizes + fields[1].sizes
    return Rows(rows, sizes)


def interleave(rows: Rows, values: pa.BinaryArray, length: int) -> memoryview:
    """Each record's row, its value, all of which have this length, and a zero byte."""
    count = len(rows.sizes)
    totals = rows.sizes + (length + 1)
    ends = np.cumsum(totals)
    starts = ends - totals
    size = int(ends[-1])
    # Arrow's allocator keeps such blocks; malloc gives them back to the kernel, and to take each
    # page anew was a third of the time.
    out = np.frombuffer(pa.allocate_buffer(size + _ROW_BYTES), np.uint8)
    # A whole row is written of each record, in their order: what is too much of it is overwritten
    # by the value and by the next row. Only the last needs room for that.
    whole_rows = rows.lanes.view(f"V{_ROW_BYTES}")[:, 0]
    places = np.ndarray((size + 1,), whole_rows.dtype, out.data, strides=(1,))
    places[starts] = whole_rows
    if length:
        first = int(np.frombuffer(values.buffers()[1], np.int32, 1, values.offset * 4)[0])
        whole_values = np.frombuffer(values.buffers()[2], f"V{length}", count, first)
        places = np.ndarray((size - length + 1,), whole_values.dtype, out.data, strides=(1,))
        places[starts + rows.sizes] = whole_values
    out[ends - 1] = 0
    return out.data[:size]


_64: Final = np.uint64(64)
_1: Final = np.uint64(1)
_2: Final = np.uint64(2)
_4: Final = np.uint64(4)
_EVEN_7: Final = np.uint64(0x007F_007F_007F_007F)
_ODD_7: Final = np.uint64(0x3F80_3F80_3F80_3F80)
_EVEN_14: Final = np.uint64(0x0000_3FFF_0000_3FFF)
_ODD_14: Final = np.uint64(0x0FFF_C000_0FFF_C000)
_EVEN_28: Final = np.uint64(0x0000_0000_0FFF_FFFF)
_ODD_28: Final = np.uint64(0x00FF_FFFF_F000_0000)
_GOES_ON: Final = np.array(
    [0, *(0x8080_8080_8080_8080 & ((1 << 8 * (size - 1)) - 1) for size in range(1, 9))], np.uint64
)
"""By size, the high bits of all bytes of a varint but its last."""
