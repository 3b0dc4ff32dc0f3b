"""Records of one length, read where they lie: as the rows of a table.

Producers' records often have one length, and their batches are then alike. Such bytes are an array
as they are, batch by record by byte; and as long as no varint gets longer, a field is at the same
place in each record: a column of that array, which is read with a stride, instead of by looking up
the position of each. Offsets and times count from 0 in every batch, so its records are a few such
arrays, *grids*, one after the other, the last of which has nearly all of them.

It is all or nothing: what does not fit is `Uneven`, and read in the ways that fit everything.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tidemark.protocol.records.columns.cursor import Cursor, HeaderSlices, Slices, Table
from tidemark.protocol.records.columns.scan import find_run
from tidemark.protocol.records.columns.sections import Section
from tidemark.protocol.records.columns.varints import Bytes, Integers, VarintReader, unzigzag_short
from tidemark.protocol.records.varints import read_varint
from tidemark.protocol.values import dataclass

_RECORDS_MIN: Final = 500
"""On average, in batches that are alike: a grid costs something, however few records it has."""
_RUNS_MAX: Final = 5
"""Of records of one length, in a batch."""
_LENGTH_BYTES_MAX: Final = 5
_MORE: Final = 0x80
"""A varint's byte that is not its last has this bit."""
_NO_VARINT: Final = np.int16(-0x8000)


class Uneven(Exception):
    """Not all records have one length, or not all fields one place in them."""


class Grids:
    """All records of a buffer, with the methods of `Cursor`; each may raise `Uneven` as well."""

    def __init__(self, reader: VarintReader, sections: Sequence[Section]) -> None:
        self._reader = reader
        self._grids = _find_grids(reader.data, sections)
        self._total = sum(section.header.record_count for section in sections)

    def varints(self) -> Integers:
        values = self._column()
        for grid in self._grids:
            grid.part_of(values)[:] = grid.varints()
        return values

    def slices(self) -> Slices:
        starts, lengths, tables = self._column(), self._column(), list[Table]()
        for grid in self._grids:
            length = grid.length()
            grid.part_of(starts)[:] = grid.positions(grid.at)
            grid.part_of(lengths)[:] = length
            begin = grid.at
            grid.skip(max(length, 0))
            if length > 0:
                tables.append(Table(grid.strings(begin, length), grid.part_of))
        return Slices(starts, lengths, tables if len(tables) == len(self._grids) else ())

    def headers(self) -> HeaderSlices:
        """If there are any, a `Cursor` reads them."""
        if not all(grid.ends_without_headers() for grid in self._grids):
            return self.kept(slice(None)).headers()
        counts, none = np.zeros(self._total, np.int64), np.empty(0, np.int64)
        return HeaderSlices(counts, Slices(none, none), Slices(none, none))

    def kept(self, which: NDArray[np.bool_] | slice) -> Cursor:
        """Where this is, in some of the records."""
        positions, ends = self._column(), self._column()
        for grid in self._grids:
            grid.part_of(positions)[:] = grid.positions(grid.at)
            grid.part_of(ends)[:] = grid.positions(grid.stride)
        return Cursor(self._reader, positions[which], ends[which])

    def _column(self) -> Integers:
        return np.empty(self._total, np.int64)


@dataclass(slots=True, kw_only=True)
class _Grid:
    """Records at the same places of batches that are alike."""

    bytes: Bytes
    """By batch, record and byte of the record."""
    pairs: NDArray[np.uint16]
    """Each byte with the one that follows it."""
    begin: int
    """Where it is in the buffer."""
    rows: slice
    """Which of all records those of its batches are."""
    columns: slice
    """Which of each batch's records are in it."""
    at: int
    """The byte of each record at which the next field begins."""

    @property
    def stride(self) -> int:
        return int(self.bytes.shape[2])

    def part_of(self, values: np.ndarray) -> np.ndarray:
        """Where its records are among the values of all."""
        return values[self.rows].reshape(len(self.bytes), -1)[:, self.columns]

    def positions(self, at: int) -> Integers:
        """Of the byte `at` of each record."""
        batches, records, stride = self.bytes.shape
        within = np.arange(self.begin + at, self.begin + at + records * stride, stride)
        return np.arange(batches)[:, np.newaxis] * self.bytes.strides[0] + within

    def strings(self, at: int, length: int) -> np.ndarray:
        """So many bytes of each record, as one element."""
        strings: np.ndarray = self.bytes[:, :, at : at + length].view(f"V{length}")[:, :, 0]
        return strings

    def varints(self) -> NDArray[np.signedinteger]:
        """The next field, of one size in all records. Raises `IndexError` behind the last."""
        at = self.at
        if self.bytes[0, 0, at] < _MORE:
            self.at += 1
            return _look_up(_ONE_BYTE, self.bytes[:, :, at])
        if self.bytes[0, 0, at + 1] < _MORE:
            self.at += 2
            return _look_up(_TWO_BYTES, self.pairs[:, :, at])
        self.at += 3
        low, high = self.pairs[:, :, at].copy(), self.bytes[:, :, at + 2].astype(np.uint32)
        if ((low & 0x8080) != 0x8080).any() or high.max() >= _MORE:
            raise Uneven
        return unzigzag_short((low & 0x7F) | ((low & 0x7F00) >> 1) | high << 14)

    def length(self) -> int:
        """The next field, which is one number in all records."""
        head = self.bytes[0, 0, self.at :][:_LENGTH_BYTES_MAX].tobytes()
        length, size = read_varint(head, 0)
        if length < -1:
            raise ValueError(f"a length of {length}")
        for place in range(self.at, self.at + size):
            self.check_same(place)
        self.at += size
        return length

    def skip(self, count: int) -> None:
        self.at += count
        if self.at > self.stride:
            raise ValueError("a length that goes beyond the record")

    def ends_without_headers(self) -> bool:
        is_last = self.at == self.stride - 1
        return is_last and not self.bytes[:, :, self.at].tobytes().strip(b"\x00")

    def check_same(self, place: int) -> None:
        """Whether all records have the same byte there."""
        column = self.bytes[:, :, place].tobytes()  # the quickest way to compare them
        if column != column[:1] * len(column):
            raise Uneven


def _find_grids(data: Bytes, sections: Sequence[Section]) -> list[_Grid]:
    groups = [list(group) for _, group in groupby(sections, key=_shape)]
    total = sum(section.header.record_count for section in sections)
    if len(groups) > 1 and total < len(groups) * _RECORDS_MIN:
        raise Uneven
    grids: list[_Grid] = []
    first = 0
    for alike in groups:
        rows = slice(first, first + len(alike) * alike[0].header.record_count)
        grids += _grids_of(data, alike, rows)
        first = rows.stop
    return grids


def _shape(section: Section) -> tuple[int, int]:
    return section.header.record_count, section.end - section.begin


def _grids_of(data: Bytes, alike: Sequence[Section], rows: slice) -> Iterator[_Grid]:
    """The runs of the first section's records, each with those at the same places of the others."""
    begins = np.array([section.begin for section in alike])
    distance = int(begins[-1] - begins[0]) // max(len(alike) - 1, 1)
    if (np.diff(begins) != distance).any():
        raise Uneven
    at, done = alike[0].begin, 0
    for _ in range(_RUNS_MAX):
        rest = data[at : alike[0].end]
        run, size, stride = find_run(rest, alike[0].header.record_count - done)
        shape, strides = (len(alike), run, stride), (distance, stride, 1)
        grid = _Grid(
            bytes=np.ndarray(shape, np.uint8, data.data, at, strides),
            pairs=np.ndarray((*shape[:2], stride - 1), "<u2", data.data, at, strides),
            begin=at,
            rows=rows,
            columns=slice(done, done + run),
            at=size + 1,  # after the attributes, a byte of which no bit is in use
        )
        if len(alike) > 1:
            for place in range(size):
                grid.check_same(place)
        yield grid
        at, done = at + run * stride, done + run
        if done == alike[0].header.record_count and at == alike[0].end:
            return
    raise Uneven


def _look_up(table: NDArray[np.int16], raw: NDArray[np.unsignedinteger]) -> NDArray[np.int16]:
    values = table.take(raw)
    if values.min() == _NO_VARINT:
        raise Uneven
    return values


def _tables() -> tuple[NDArray[np.int16], NDArray[np.int16]]:
    """The numbers that one and two bytes are, if these are all there is of them."""
    pairs = np.arange(1 << 16, dtype=np.uint16)
    low, high = pairs & 0xFF, pairs >> 8
    one = np.where(low < _MORE, unzigzag_short(low), _NO_VARINT)[:256]
    two = unzigzag_short((low & 0x7F) | high << 7)
    return one, np.where((low >= _MORE) & (high < _MORE), two, _NO_VARINT)


_ONE_BYTE, _TWO_BYTES = _tables()
