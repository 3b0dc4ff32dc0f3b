"""One position in each record of a buffer, all moved together from field to field."""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidemark.protocol.records.columns.varints import Integers, Unusual, VarintReader
from tidemark.protocol.values import dataclass

_HEADERS_MAX: Final = 64
"""Headers are read one per record and round; a record with more is not worth the rounds."""


class Table(NamedTuple):
    """Byte strings of one length that lie at even distances, as numpy sees them without a copy."""

    elements: np.ndarray
    """The strings, by batch and record."""
    part_of: Callable[[np.ndarray], np.ndarray]
    """Where these are in an array of all."""


@dataclass(frozen=True, slots=True)
class Slices:
    """Where byte strings lie in a buffer, in rising order; a null has a length of -1.

    Invariant: they lie within the buffer and do not overlap.
    """

    starts: Integers
    lengths: Integers
    tables: Sequence[Table] = ()
    """All of them once more, if they lie in tables and are not empty: copied in one piece each."""


@dataclass(frozen=True, slots=True)
class HeaderSlices:
    """How many headers each record has, and all their keys and values in order."""

    counts: Integers
    keys: Slices
    values: Slices


class Cursor:
    """Reads what is at its positions and leaves them behind it.

    All methods raise `IndexError`, `ValueError` or `Unusual` if the bytes there are not right.
    """

    def __init__(self, reader: VarintReader, positions: Integers, ends: Integers) -> None:
        self._reader = reader
        self.positions = positions
        self.ends = ends
        """Where the records end. Byte strings are held to it, whatever else is read of a record."""

    def varints(self) -> Integers:
        values, self.positions = self._reader.read(self.positions)
        return values

    def kept(self, which: NDArray[np.bool_]) -> "Cursor":
        """Where this is, in some of the records."""
        return Cursor(self._reader, self.positions[which], self.ends[which])

    def slices(self) -> Slices:
        """A length and as many bytes; the bytes themselves are only walked past."""
        lengths = self.varints()
        slices = Slices(self.positions, lengths)
        least = lengths.min(initial=0)
        if least < -1:
            raise ValueError(f"a length of {least}")
        if least == 0:
            self.positions = self.positions + lengths
        elif lengths.max() >= 0:
            self.positions = self.positions + np.maximum(lengths, 0)
        if (self.positions > self.ends).any():
            raise ValueError("a length that goes beyond the record")
        return slices

    def headers(self) -> HeaderSlices:
        """The headers of each record, which reach exactly to its end."""
        counts = self.varints()
        least, most = counts.min(initial=0), counts.max(initial=0)
        if least < 0 or most > _HEADERS_MAX:
            raise Unusual
        if not most:
            self._check_ends()
            none = np.empty(0, np.int64)
            return HeaderSlices(counts, Slices(none, none), Slices(none, none))
        first = np.cumsum(counts) - counts
        total = int(counts.sum())
        keys = Slices(np.empty(total, np.int64), np.empty(total, np.int64))
        values = Slices(np.empty(total, np.int64), np.empty(total, np.int64))
        for done in range(most):
            having = np.flatnonzero(counts > done)
            inner = Cursor(self._reader, self.positions[having], self.ends[having])
            for column, null_allowed in ((keys, False), (values, True)):
                slices = inner.slices()
                if not null_allowed and slices.lengths.min() < 0:
                    raise ValueError("a header without a key")
                column.starts[first[having] + done] = slices.starts
                column.lengths[first[having] + done] = slices.lengths
            self.positions[having] = inner.positions
        self._check_ends()
        return HeaderSlices(counts, keys, values)

    def _check_ends(self) -> None:
        if (self.positions != self.ends).any():
            raise ValueError("a record does not end where its length says")
