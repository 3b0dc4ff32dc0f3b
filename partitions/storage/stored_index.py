"""The indexes of a complete segment, in their files; see `index` for the format."""

import sys
from bisect import bisect_left, bisect_right
from collections.abc import Callable

from tidemark.partitions.storage.files import File
from tidemark.partitions.storage.index import (
    ENTRY,
    ENTRY_BYTES,
    TIME_ENTRY,
    TIME_ENTRY_BYTES,
    Entry,
    TimeEntry,
)
from tidemark.protocol.types import Offset


class StoredIndex:
    """Looks entries up where they lie: no memory, 1 µs a comparison.

    An entry may be wrong (a bit flip, another segment's file), so who uses one checks that the
    batch is where the entry says. A correct entry is good to start from, even when a wrong one
    has misled the search to one that lies too far back.
    """

    __slots__ = (
        "_count",
        "_open",
        "_open_times",
        "_time_count",
        "base_offset",
        "largest",
        "read_before",
    )

    def __init__(
        self, base_offset: Offset, open_index: Callable[[], File], open_times: Callable[[], File]
    ) -> None:
        """Raises `ValueError` for files that cannot be an index, `FileNotFoundError` without."""
        self.base_offset = base_offset
        self.read_before = Offset(sys.maxsize)
        """All of its entries were, and may be wrong."""
        self._open = open_index
        self._open_times = open_times
        self._count, rest = divmod(open_index().size(), ENTRY_BYTES)
        self._time_count, times_rest = divmod(open_times().size(), TIME_ENTRY_BYTES)
        if rest or times_rest:
            raise ValueError("an index file ends within an entry")
        last = self._time_count - 1
        self.largest = self._time_entry(open_times(), last) if last >= 0 else None

    def floor(self, offset: Offset) -> Entry | None:
        """The last entry for a batch that ends at or before `offset`."""
        file = self._open()
        found = bisect_right(range(self._count), offset, key=lambda n: self._entry(file, n)[0])
        return self._entry(file, found - 1) if found else None

    def floor_position(self, position: int) -> Entry | None:
        """The last entry for a batch that starts at or before `position`."""
        file = self._open()
        found = bisect_right(range(self._count), position, key=lambda n: self._entry(file, n)[1])
        return self._entry(file, found - 1) if found else None

    def earlier(self, timestamp_ms: int) -> TimeEntry | None:
        """The last entry with a smaller timestamp: what is searched for lies behind it."""
        if not self._time_count:
            return None
        file = self._open_times()
        found = bisect_left(
            range(self._time_count), timestamp_ms, key=lambda n: self._time_entry(file, n)[0]
        )
        return self._time_entry(file, found - 1) if found else None

    def largest_before(self, offset: Offset) -> TimeEntry | None:
        """The last entry for a batch that ends before `offset`."""
        if not self._time_count:
            return None
        file = self._open_times()
        found = bisect_left(
            range(self._time_count), offset, key=lambda n: self._time_entry(file, n)[1]
        )
        return self._time_entry(file, found - 1) if found else None

    def _entry(self, file: File, number: int) -> Entry:
        offset, position = ENTRY.unpack(file.pread(ENTRY_BYTES, number * ENTRY_BYTES))
        return Entry(Offset(self.base_offset + offset), position)

    def _time_entry(self, file: File, number: int) -> TimeEntry:
        entry = file.pread(TIME_ENTRY_BYTES, number * TIME_ENTRY_BYTES)
        timestamp_ms, offset = TIME_ENTRY.unpack(entry)
        return TimeEntry(timestamp_ms, Offset(self.base_offset + offset))
