"""Sparse indexes of one segment: offsets and timestamps to positions, in Kafka's two files.

`.index`, 8 bytes an entry, ascending:

| at | field    | type  | |
|---:|----------|-------|-|
|  0 | offset   | int32 | last offset of a batch, relative to the segment's base offset |
|  4 | position | int32 | where in the `.log` that batch starts |

`.timeindex`, 12 bytes an entry, both fields ascending:

| at | field     | type  | |
|---:|-----------|-------|-|
|  0 | timestamp | int64 | the largest timestamp in the segment up to here |
|  8 | offset    | int32 | relative last offset of the first batch that had it |

A batch gets an entry when more than `index_interval_bytes` lie before it since the last one; the
time index ends with an entry for the whole segment. With base offset 100, an interval of 1000 and
three batches of 600 bytes that end at the offsets 104, 109 and 114, the only entry is made for the
third, and `.index` is `00 00 00 0e 00 00 04 b0`: offset 114 lies in the batch at 1200.

Both are derived from the `.log`. They are written when a segment is complete, or its log is closed,
and never while it grows: so an index file, where there is one, is all of it true.
"""

import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import partial
from struct import Struct
from typing import Final, NamedTuple

from tidemark.protocol.records.header import LOG_OVERHEAD, Fields
from tidemark.protocol.types import NO_TIMESTAMP_MS, Offset

ENTRY: Final = Struct(">ii")
TIME_ENTRY: Final = Struct(">qi")
ENTRY_BYTES: Final = ENTRY.size
TIME_ENTRY_BYTES: Final = TIME_ENTRY.size
RELATIVE_OFFSET_MAX: Final = 2**31 - 1


# Most of thousands of partitions have no entry, and an empty array takes 80 bytes.
_NO_INTS: Final = array("i")
_NO_LONGS: Final = array("q")


class Entry(NamedTuple):
    """A batch that ends with `last_offset` starts at `position`."""

    last_offset: Offset
    position: int


class TimeEntry(NamedTuple):
    """No record up to `offset` has a larger timestamp; the batch that ends there has this one."""

    timestamp_ms: int
    offset: Offset


# Made for nearly every batch: calling the class takes twice the time.
_time_entry: Final = partial(tuple.__new__, TimeEntry)


class GrowingIndex:
    """The indexes of a segment that is being written, in memory: 8 and 12 bytes an entry."""

    __slots__ = (
        "_interval_bytes",
        "_offsets",
        "_positions",
        "_time_offsets",
        "_timestamps",
        "_unindexed_bytes",
        "base_offset",
        "largest",
        "read_before",
    )

    def __init__(self, base_offset: Offset, interval_bytes: int) -> None:
        self.base_offset = base_offset
        self.largest: TimeEntry | None = None
        """The largest timestamp, and the first batch that has it; `None` without timestamps."""
        self.read_before = Offset(0)
        """Entries of batches that end before this were read from files, and may be wrong."""
        self._interval_bytes = interval_bytes
        self._unindexed_bytes = 0
        self._offsets = self._positions = self._time_offsets = _NO_INTS
        self._timestamps = _NO_LONGS

    def add(self, position: int, size_bytes: int, last_offset: Offset, timestamp_ms: int) -> None:
        """A batch was appended; `timestamp_ms` is its largest."""
        largest = self.largest
        if timestamp_ms > (NO_TIMESTAMP_MS if largest is None else largest[0]):
            self.largest = _time_entry((timestamp_ms, last_offset))
        if self._unindexed_bytes > self._interval_bytes:
            if self._offsets is _NO_INTS:
                self._begin()
            self._offsets.append(last_offset - self.base_offset)
            self._positions.append(position)
            self._add_time_entry()
            self._unindexed_bytes = 0
        self._unindexed_bytes += size_bytes

    def add_run(self, position: int, offset: Offset, headers: Sequence[Fields]) -> None:
        """Batches were appended one behind the other: the first at `position`, from `offset` on."""
        # What `add` does for each of them, in one visit.
        interval_bytes, unindexed_bytes = self._interval_bytes, self._unindexed_bytes
        largest, base_offset = self.largest, self.base_offset
        largest_ms, may_be_timed = NO_TIMESTAMP_MS if largest is None else largest[0], True
        for _, length, _, _, _, _, delta, _, timestamp_ms, _, _, _, _ in headers:
            last_offset = Offset(offset + delta)
            if timestamp_ms > largest_ms:
                self.largest = _time_entry((timestamp_ms, last_offset))
                largest_ms, may_be_timed = timestamp_ms, True
            if unindexed_bytes > interval_bytes:
                if self._offsets is _NO_INTS:
                    self._begin()
                self._offsets.append(last_offset - base_offset)
                self._positions.append(position)
                if may_be_timed:
                    self._add_time_entry()
                    may_be_timed = False
                unindexed_bytes = 0
            size_bytes = length + LOG_OVERHEAD
            unindexed_bytes += size_bytes
            position += size_bytes
            offset = Offset(last_offset + 1)
        self._unindexed_bytes = unindexed_bytes

    def _begin(self) -> None:
        """Have arrays of its own, of which nothing is kept."""
        self._offsets, self._positions = array("i"), array("i")
        self._timestamps, self._time_offsets = array("q"), array("i")

    def _add_time_entry(self) -> None:
        largest, timestamps = self.largest, self._timestamps
        if largest is not None and (not timestamps or largest.timestamp_ms > timestamps[-1]):
            timestamps.append(largest.timestamp_ms)
            self._time_offsets.append(largest.offset - self.base_offset)

    def floor(self, offset: Offset) -> Entry | None:
        """The last entry for a batch that ends at or before `offset`."""
        return self._entry(bisect_right(self._offsets, offset - self.base_offset) - 1)

    def floor_position(self, position: int) -> Entry | None:
        """The last entry for a batch that starts at or before `position`."""
        return self._entry(bisect_right(self._positions, position) - 1)

    def earlier(self, timestamp_ms: int) -> TimeEntry | None:
        """The last entry with a smaller timestamp: what is searched for lies behind it."""
        return self._time_entry(bisect_left(self._timestamps, timestamp_ms) - 1)

    def largest_before(self, offset: Offset) -> TimeEntry | None:
        """The last entry for a batch that ends before `offset`."""
        return self._time_entry(bisect_left(self._time_offsets, offset - self.base_offset) - 1)

    def _entry(self, number: int) -> Entry | None:
        if number < 0:
            return None
        return Entry(Offset(self.base_offset + self._offsets[number]), self._positions[number])

    def _time_entry(self, number: int) -> TimeEntry | None:
        if number < 0:
            return None
        offset = Offset(self.base_offset + self._time_offsets[number])
        return TimeEntry(self._timestamps[number], offset)

    def rewind(self, end_offset: Offset) -> int:
        """Forget all about batches that end at or after `end_offset`, and a little more.

        Returns a position: every batch from there on has to be added again. The index is then
        the same as if it had never known another.
        """
        kept = bisect_left(self._offsets, end_offset - self.base_offset)
        del self._offsets[kept:], self._positions[kept:]
        # Time entries are made together with offset entries, for no later batch than theirs.
        kept_time = bisect_right(self._time_offsets, self._offsets[-1]) if kept else 0
        del self._timestamps[kept_time:], self._time_offsets[kept_time:]
        self.largest = self._time_entry(len(self._timestamps) - 1)
        self._unindexed_bytes = 0
        return self._positions[-1] if kept else 0

    def encode(self) -> bytes:
        """The content of `.index`."""
        entries = array("i", bytes(len(self._offsets) * ENTRY_BYTES))
        entries[0::2], entries[1::2] = self._offsets, self._positions
        return _big_endian(entries).tobytes()

    def encode_times(self) -> bytes:
        """The content of `.timeindex`, with the entry that closes it."""
        entries = b"".join(map(TIME_ENTRY.pack, self._timestamps, self._time_offsets))
        largest = self.largest
        if largest is not None and (not self._timestamps or largest[0] > self._timestamps[-1]):
            entries += TIME_ENTRY.pack(largest.timestamp_ms, largest.offset - self.base_offset)
        return entries

    @classmethod
    def decode(
        cls, base_offset: Offset, interval_bytes: int, index: bytes, times: bytes
    ) -> "GrowingIndex":
        """The index that was encoded; it has to be rewound before it can grow.

        Raises `ValueError` for bytes that cannot be an index.
        """
        decoded = cls(base_offset, interval_bytes)
        if len(index) % ENTRY_BYTES or len(times) % TIME_ENTRY_BYTES:
            raise ValueError("an index file ends within an entry")
        decoded._begin()
        entries = _big_endian(array("i", index))
        decoded._offsets, decoded._positions = entries[0::2], entries[1::2]
        for timestamp_ms, offset in TIME_ENTRY.iter_unpack(times):
            decoded._timestamps.append(timestamp_ms)
            decoded._time_offsets.append(offset)
        decoded.largest = decoded._time_entry(len(decoded._timestamps) - 1)
        decoded.read_before = Offset(base_offset + RELATIVE_OFFSET_MAX)
        return decoded

    def become(self, other: "GrowingIndex") -> None:
        """Have what another has, which is not to be used any more."""
        for name in self.__slots__:
            setattr(self, name, getattr(other, name))


def decode_entries(base_offset: Offset, index: bytes) -> list[Entry]:
    """What an `.index` file says, as it stands there."""
    return [Entry(Offset(base_offset + o), position) for o, position in ENTRY.iter_unpack(index)]


def decode_time_entries(base_offset: Offset, times: bytes) -> list[TimeEntry]:
    """What a `.timeindex` file says, as it stands there."""
    entries = TIME_ENTRY.iter_unpack(times)
    return [TimeEntry(timestamp_ms, Offset(base_offset + o)) for timestamp_ms, o in entries]


def _big_endian(values: "array[int]") -> "array[int]":
    """Turned from this machine's byte order into the file's, or back."""
    if sys.byteorder == "little":
        values.byteswap()
    return values
