"""The index of a segment, and whether what it says is so.

It may be wrong where it was read from files: a bit flip, or the files of another segment. So who
starts from an entry looks at the batch that it is about, and where the two do not agree the index
is made anew.
"""

from collections.abc import Callable
from typing import Protocol

from tidemark.partitions.storage.files import corrupt
from tidemark.partitions.storage.index import (
    RELATIVE_OFFSET_MAX,
    Entry,
    GrowingIndex,
    TimeEntry,
)
from tidemark.partitions.storage.segment_files import SegmentFiles
from tidemark.partitions.storage.stored_index import StoredIndex
from tidemark.protocol.types import Offset


class Index(Protocol):
    """What a segment asks its index: the one in memory, or the one in files."""

    @property
    def largest(self) -> TimeEntry | None: ...
    @property
    def read_before(self) -> Offset: ...
    def floor(self, offset: Offset) -> Entry | None: ...
    def floor_position(self, position: int) -> Entry | None: ...
    def earlier(self, timestamp_ms: int) -> TimeEntry | None: ...
    def largest_before(self, offset: Offset) -> TimeEntry | None: ...


class IndexedSegment(SegmentFiles):
    """A segment in which one can start to look close by."""

    __slots__ = ()

    @property
    def index(self) -> Index:
        """The index, from its files or, where those are missing or wrong, from the segment."""
        if self._index is None:
            self._index = self._stored_index() or self.rebuild_index()
        return self._index

    @property
    def unsaved_index(self) -> GrowingIndex | None:
        """The index, if it is in memory only."""
        return self._index if isinstance(self._index, GrowingIndex) else None

    def use_index(self, index: GrowingIndex | None) -> None:
        """Take `index` for this segment's; `None`: the files hold it.

        Any thread may call it. The files are forgotten first: who finds no index here must not
        be given files that were replaced.
        """
        self._readers.forget(self.index_path)
        self._readers.forget(self.time_index_path)
        self._index = index

    def growing_index(self) -> GrowingIndex:
        """The index in memory, complete, for the segment that is appended to."""
        index = self.unsaved_index
        if index is None:
            index = self._index = self._loaded_index() or self.rebuild_index()
        return index

    def rebuild_index(self) -> GrowingIndex:
        """The index made anew from the segment's headers."""
        index = GrowingIndex(self.base_offset, self._interval_bytes)
        self.extend_index(index, 0)
        return index

    def extend_index(self, index: GrowingIndex, position: int) -> None:
        """Raises `StorageError` for a batch with offsets of another segment."""
        for at, header in self.batches_from(position):
            first, last = header.base_offset - self.base_offset, header.last_offset
            if first < 0 or last - self.base_offset > RELATIVE_OFFSET_MAX:
                raise corrupt(self.path, at, f"offset {header.base_offset} in another segment")
            index.add(at, header.size_bytes, header.last_offset, header.max_timestamp)

    def _stored_index(self) -> StoredIndex | None:
        try:
            index = StoredIndex(
                self.base_offset,
                lambda: self._readers.get(self.index_path),
                lambda: self._readers.get(self.time_index_path),
            )
        except (FileNotFoundError, ValueError):
            return None
        return index if self._largest_is_true(index) else None

    def _loaded_index(self) -> GrowingIndex | None:
        try:
            index_file = self._readers.get(self.index_path)
            times_file = self._readers.get(self.time_index_path)
            index = GrowingIndex.decode(
                self.base_offset,
                self._interval_bytes,
                index_file.pread(index_file.size(), 0),
                times_file.pread(times_file.size(), 0),
            )
        except (FileNotFoundError, ValueError):
            return None
        last = index.floor(Offset(self.end_offset - 1))
        if last is not None and not self._is_true(last):
            return None
        largest, index.read_before = index.largest, self.end_offset
        self.extend_index(index, index.rewind(self.end_offset))
        return index if index.largest == largest and self._largest_is_true(index) else None

    def _is_true(self, entry: Entry) -> bool:
        header = self.header_at(entry.position)
        return header is not None and header.last_offset == entry.last_offset

    def _largest_is_true(self, index: Index) -> bool:
        """Whether the last time entry is what its batch says: an index of another file is not."""
        if index.largest is None:
            first = self.header_at(0)
            return first is None or first.max_timestamp < 0
        return self._time_is_true(index, index.largest)

    def _time_is_true(self, index: Index, time: TimeEntry) -> bool:
        entry = index.floor(time.offset)
        position = entry.position if entry is not None and self._is_true(entry) else 0
        for _, header in self.batches_from(position):
            if header.last_offset >= time.offset:
                return header.max_timestamp == time.timestamp_ms
        return False

    def _checked_start(self, find: Callable[[Index], Entry | None]) -> int:
        """Where to start walking, by an index entry that has been checked."""
        index = self.index
        entry = find(index)
        if entry is None:
            return 0
        if entry[0] < index.read_before and not self._is_true(entry):
            entry = find(self._made_anew())
        return entry.position if entry is not None else 0

    def earlier(self, timestamp_ms: int) -> TimeEntry | None:
        """The last entry with a smaller timestamp, as the index has it."""
        return self._checked_time(lambda index: index.earlier(timestamp_ms))

    def largest_before(self, offset: Offset) -> TimeEntry | None:
        """The last entry for a batch that ends before `offset`, as the index has it."""
        return self._checked_time(lambda index: index.largest_before(offset))

    def _checked_time(self, find: Callable[[Index], TimeEntry | None]) -> TimeEntry | None:
        """A time entry that has been checked."""
        index = self.index
        entry = find(index)
        # Its offset may be what is wrong: so all are checked, where any were read.
        if entry is None or not index.read_before or self._time_is_true(index, entry):
            return entry
        return find(self._made_anew())

    def _made_anew(self) -> GrowingIndex:
        """The index, where the one that was read is not true."""
        made = self.rebuild_index()
        if isinstance(self._index, GrowingIndex):
            self._index.become(made)  # whoever appends goes on with it
            return self._index
        self._index = made
        return made
