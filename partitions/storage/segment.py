"""One segment of a log: a file of record batches back to back, and the indexes over it."""

from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

from tidemark.partitions.storage.file_cache import FileCache
from tidemark.partitions.storage.files import File, corrupt
from tidemark.partitions.storage.index import (
    RELATIVE_OFFSET_MAX,
    Entry,
    GrowingIndex,
    TimeEntry,
)
from tidemark.partitions.storage.names import (
    INDEX_SUFFIX,
    LOG_SUFFIX,
    TIME_INDEX_SUFFIX,
    file_name,
)
from tidemark.partitions.storage.scan import find_batch, iter_batches
from tidemark.partitions.storage.slices import EMPTY_SLICE, LogSlice
from tidemark.partitions.storage.stored_index import StoredIndex
from tidemark.protocol.errors import CorruptBatch
from tidemark.protocol.records.header import HEADER_BYTES, BatchHeader, read_header
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


class Boundary(NamedTuple):
    """A place between two batches: bytes before it, and the offset of the first record after."""

    position: int
    offset: Offset


class Segment:
    """The batches from `base_offset` to `end_offset`, and how to find one.

    Invariant: the first `size_bytes` of the file are whole batches with those offsets.
    """

    __slots__ = (
        "_directory",
        "_index",
        "_interval_bytes",
        "_read",
        "_readers",
        "base_offset",
        "detached",
        "end_offset",
        "first_seen_ms",
        "is_lent",
        "is_new",
        "is_synced",
        "pinned",
        "size_bytes",
        "writer",
    )

    def __init__(
        self,
        directory: str,
        base_offset: Offset,
        *,
        end_offset: Offset,
        size_bytes: int,
        readers: FileCache,
        interval_bytes: int,
    ) -> None:
        self.base_offset = base_offset
        self.end_offset = end_offset
        self.size_bytes = size_bytes
        self.writer: File | None = None
        """Open while there are bytes that are not synced, and while the segment is appended to."""
        self.first_seen_ms: int | None = None
        """When retention first saw it with records in it, by the broker's clock."""
        self.is_lent = False
        """Something of it may have been given to the kernel to be sent, by this process or by one
        before: who gets it may not have read it yet, and reads what is there by then."""
        self.is_new = False
        """Its name may not be on the disk yet, or those that are gone may still be there; a sync of
        the directory need not clear it."""
        self.is_synced = False
        """Complete, and on the disk to its end, though its writer is still open: its index has yet
        to be written. Set under the log's sync lock."""
        self.pinned: File | None = None
        """To be read from while its files do not have their names yet."""
        self.detached = False
        """No longer of its log: its files are going away. Set under the log's sync lock."""
        self._directory = directory
        self._readers = readers
        self._interval_bytes = interval_bytes
        self._index: GrowingIndex | StoredIndex | None = None
        # What the last slice was asked for by, where it starts and where it ends: a reader of the
        # tail goes on there, and the other readers of the tail ask for the same.
        self._read: tuple[tuple[Offset, int, Offset, bool], int, Boundary] | None = None

    def __repr__(self) -> str:
        return f"<Segment {self.base_offset} to {self.end_offset}, {self.size_bytes} bytes>"

    @property
    def path(self) -> str:
        return f"{self._directory}/{file_name(self.base_offset, LOG_SUFFIX)}"

    @property
    def index_path(self) -> str:
        return f"{self._directory}/{file_name(self.base_offset, INDEX_SUFFIX)}"

    @property
    def time_index_path(self) -> str:
        return f"{self._directory}/{file_name(self.base_offset, TIME_INDEX_SUFFIX)}"

    @property
    def file(self) -> File:
        """The file to read from."""
        return self.writer or self.pinned or self._readers.get(self.path)

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

    def forget_files(self) -> None:
        """The files are going away: keep none of them open for others."""
        for path in (self.path, self.index_path, self.time_index_path):
            self._readers.forget(path)

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

    def header_at(self, position: int) -> BatchHeader | None:
        """The header there, if that is one. Raises `OSError`."""
        if not 0 <= position < self.size_bytes:
            return None
        try:
            return read_header(self.file.pread(HEADER_BYTES, position))
        except CorruptBatch:
            return None

    def _start(self, find: Callable[[Index], Entry | None]) -> int:
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
        return self._time(lambda index: index.earlier(timestamp_ms))

    def largest_before(self, offset: Offset) -> TimeEntry | None:
        """The last entry for a batch that ends before `offset`, as the index has it."""
        return self._time(lambda index: index.largest_before(offset))

    def _time(self, find: Callable[[Index], TimeEntry | None]) -> TimeEntry | None:
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

    def end_at(self, position: int, offset: Offset) -> None:
        """Its file has been cut so that it ends there."""
        self.size_bytes, self.end_offset = position, offset
        self._read = None

    def batches_from(self, position: int) -> Iterator[tuple[int, BatchHeader]]:
        """The batches from one's position on. Raises `StorageError` where there is none."""
        try:
            yield from iter_batches(self.file, position, self.size_bytes)
        except CorruptBatch as error:
            raise corrupt(self.path, error.at, error.what) from error

    def read_batch(self, position: int, header: BatchHeader) -> bytes:
        """The bytes of the batch that starts at a position, of which this is the header."""
        return self.file.pread(header.size_bytes, position)

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
        start = self._start(lambda i: i.floor(offset))
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
            start = self._start(lambda i: i.floor_position(position))
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
        entry = self._start(lambda i: i.floor_position(limit))
        fitting = self._find(max(start, entry), self.base_offset, after=limit)
        if fitting is None:
            raise corrupt(self.path, self.size_bytes, f"it ends before position {limit}")
        if fitting.position > start or not at_least_one:
            return fitting
        _, first = next(self.batches_from(start))
        return min(Boundary(start + first.size_bytes, first.next_offset), end)
