"""One segment of a log: where in its files a batch is, and the slice that a reader gets."""

from tidemark.partitions.storage.files import corrupt
from tidemark.partitions.storage.scan import find_batch
from tidemark.partitions.storage.segment_files import Boundary
from tidemark.partitions.storage.segment_index import IndexedSegment
from tidemark.partitions.storage.slices import EMPTY_SLICE, LogSlice
from tidemark.protocol.errors import CorruptBatch
from tidemark.protocol.types import Offset


class Segment(IndexedSegment):
    """The batches from `base_offset` to `end_offset`, and how to find one."""

    __slots__ = ()

    def position_of(self, offset: Offset) -> int:
        """Where the batch that holds `offset` starts; the segment's size for its end offset."""
        return self._start_of(offset).position

    def _start_of(self, offset: Offset) -> Boundary:
        """Before the batch that holds `offset`."""
        if offset >= self.end_offset:
            return Boundary(self.size_bytes, self.end_offset)
        if offset <= self.base_offset:
            return Boundary(0, self.base_offset)
        read_to = None if self._read is None else self._read[2]
        if read_to is not None and read_to.offset == offset:
            return read_to
        start = self._checked_start(lambda i: i.floor(offset))
        if read_to is not None and start < read_to.position and read_to.offset < offset:
            start = read_to.position
        found = self._find(start, offset)
        if found is None:
            raise corrupt(self.path, self.size_bytes, f"it ends before offset {offset}")
        return found

    def _find(self, start: int, offset: int, *, after: int = -1) -> Boundary | None:
        """As `find_batch` does. Raises `StorageError`."""
        try:
            found = find_batch(self.file, start, self.size_bytes, offset, after=after)
        except CorruptBatch as error:
            raise corrupt(self.path, error.at, error.what) from error
        return None if found is None else Boundary(*found)

    def boundary_at(self, position: int) -> Boundary:
        """The last start or end of a batch at or before `position`."""
        if position < self.size_bytes:
            start = self._checked_start(lambda i: i.floor_position(position))
            for at, header in self.batches_from(start):
                if at + header.size_bytes > position:
                    return Boundary(at, header.base_offset)
        return Boundary(self.size_bytes, self.end_offset)

    def slice(
        self, offset: Offset, *, bytes_max: int, end_offset: Offset, at_least_one: bool
    ) -> LogSlice:
        """Whole batches from the one that holds `offset` on; see `Log.read`."""
        asked = offset, bytes_max, min(end_offset, self.end_offset), at_least_one
        read = self._read
        if read is not None and read[0] == asked:
            _, start, end = read
        else:
            start, end = self._start_of(offset).position, self._start_of(end_offset)
            if end.position - start > bytes_max:
                end = self._last_fitting(start, end, bytes_max, at_least_one)
            if end.position <= start:
                return EMPTY_SLICE
            self._read = asked, start, end
        return LogSlice(self.file, start, end.position - start, end.offset, self)

    def _last_fitting(
        self, start: int, end: Boundary, bytes_max: int, at_least_one: bool
    ) -> Boundary:
        """Where to end so that only whole batches are within `bytes_max`, or the first alone;
        `end` is too far."""
        limit = start + bytes_max
        entry = self._checked_start(lambda i: i.floor_position(limit))
        fitting = self._find(max(start, entry), self.base_offset, after=limit)
        if fitting is None:
            raise corrupt(self.path, self.size_bytes, f"it ends before position {limit}")
        if fitting.position > start or not at_least_one:
            return fitting
        _, first = next(self.batches_from(start))
        return min(Boundary(start + first.size_bytes, first.next_offset), end)
