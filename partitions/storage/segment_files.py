"""What a segment of a log is: its file of record batches back to back, and what is known of it."""

from collections.abc import Iterator
from typing import NamedTuple

from tidemark.partitions.storage.file_cache import FileCache
from tidemark.partitions.storage.files import File, corrupt
from tidemark.partitions.storage.index import GrowingIndex
from tidemark.partitions.storage.names import (
    INDEX_SUFFIX,
    LOG_SUFFIX,
    TIME_INDEX_SUFFIX,
    file_name,
)
from tidemark.partitions.storage.scan import iter_batches
from tidemark.partitions.storage.stored_index import StoredIndex
from tidemark.protocol.errors import CorruptBatch
from tidemark.protocol.records.header import HEADER_BYTES, BatchHeader, read_header
from tidemark.protocol.types import Offset


class Boundary(NamedTuple):
    """A place between two batches: bytes before it, and the offset of the first record after."""

    position: int
    offset: Offset


class SegmentFiles:
    """The batches from `base_offset` to `end_offset`, as they lie there.

    How they are found is in those that derive from it.

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

    def forget_files(self) -> None:
        """The files are going away: keep none of them open for others."""
        for path in (self.path, self.index_path, self.time_index_path):
            self._readers.forget(path)

    def header_at(self, position: int) -> BatchHeader | None:
        """The header there, if that is one. Raises `OSError`."""
        if not 0 <= position < self.size_bytes:
            return None
        try:
            return read_header(self.file.pread(HEADER_BYTES, position))
        except CorruptBatch:
            return None

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
