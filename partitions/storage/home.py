"""Where a log lives: its directory, the file system under it, and who keeps its files open."""

from itertools import chain

from tidemark.partitions.storage.file_cache import FileCache
from tidemark.partitions.storage.files import Files, pieces_of, remove_if_there, replace_file_by
from tidemark.partitions.storage.names import LOG_SUFFIX, offset_in
from tidemark.partitions.storage.recycled_file import RecycledFile
from tidemark.partitions.storage.segment import Segment
from tidemark.partitions.storage.snapshots import Snapshots
from tidemark.protocol.records.gaps import gap_batch, is_gap
from tidemark.protocol.records.header import BatchHeader
from tidemark.protocol.types import Offset
from tidemark.protocol.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LogHome:
    """One partition's directory."""

    files: Files
    directory: str
    readers: FileCache
    interval_bytes: int

    @property
    def snapshots(self) -> Snapshots:
        return Snapshots(self.files, self.directory)

    def segment(self, base_offset: Offset, *, end_offset: Offset, size_bytes: int) -> Segment:
        """A segment whose file is there."""
        segment = Segment(
            self.directory,
            base_offset,
            end_offset=end_offset,
            size_bytes=size_bytes,
            readers=self.readers,
            interval_bytes=self.interval_bytes,
        )
        segment.is_lent = self.files.sends_pages
        return segment

    def create_segment(
        self,
        base_offset: Offset,
        *,
        is_first: bool = False,
        recycled: RecycledFile | None = None,
    ) -> Segment:
        """An empty segment, open for writing; its name is durable once the directory is synced.

        `is_first`: the directory is empty, so there is no index to be removed.
        `recycled`: the file is this one, if it is offered, and longer than the segment then.
        """
        segment = self.segment(base_offset, end_offset=base_offset, size_bytes=0)
        if is_first:
            segment.forget_files()
        else:
            self.remove_index(segment)
        segment.writer = recycled.take(segment.path) if recycled is not None else None
        if segment.writer is None:
            segment.writer = self.files.create(segment.path)
        segment.is_new, segment.is_lent = True, False
        return segment

    def remove_index(self, segment: Segment) -> None:
        for path in (segment.index_path, segment.time_index_path):
            self.readers.forget(path)
            remove_if_there(self.files, path)

    def remove_segment(self, segment: Segment) -> None:
        segment.forget_files()
        self.remove_files(segment)

    def remove_segments(self) -> None:
        """Remove the files of every segment that is there, newest first, whether or not it is part
        of the log: a removal may not have come to it."""
        bases = (offset_in(name, LOG_SUFFIX) for name in self.files.sizes(self.directory))
        for base in sorted((base for base in bases if base is not None), reverse=True):
            self.remove_files(self.segment(base, end_offset=base, size_bytes=0))

    def remove_files(self, segment: Segment) -> None:
        """Remove a forgotten segment's files, on any thread.

        The `.log` goes last: an index without one is a leftover that the next opening removes.
        """
        for path in (segment.index_path, segment.time_index_path, segment.path):
            remove_if_there(self.files, path)

    def recycle(self, segment: Segment, recycled: RecycledFile) -> None:
        """As `remove_files`, but the file may be taken once it is offered."""
        for path in (segment.index_path, segment.time_index_path):
            remove_if_there(self.files, path)
        recycled.keep(segment.path, segment)

    def cut_segment(self, segment: Segment, offset: Offset) -> None:
        """End a segment before the batch that holds `offset`. Blocking, and durable on return.

        Index files and snapshots that speak of what goes are removed, durably, before it goes.
        """
        position, end_offset = segment.position_of(offset), offset
        if position < segment.size_bytes:
            _, header = next(segment.batches_from(position))
            if is_gap(header) and header.base_offset < offset:
                self.end_in_gap(segment, position, header, offset)
                return
            end_offset = header.base_offset
        index = segment.growing_index()
        self.remove_index(segment)
        self.snapshots.remove_above(end_offset)
        self.sync()
        if segment.writer is None:
            segment.writer = self.files.open(segment.path)
        segment.writer.truncate(position)
        segment.writer.sync()
        segment.end_at(position, end_offset)
        segment.extend_index(index, index.rewind(end_offset))
        segment.use_index(index)

    def end_in_gap(
        self, segment: Segment, position: int, gap: BatchHeader, end_offset: Offset
    ) -> None:
        """End a segment within a gap, of which the first part stays. Blocking, durable on return.

        The file is replaced as a whole: the gap that is there reaches further than its log does,
        and the one that is to be there must not be torn.
        """
        kept = gap_batch(gap.base_offset, end_offset, gap.partition_leader_epoch)
        content = chain(pieces_of(segment.file, position), (kept,))
        self.remove_index(segment)
        self.snapshots.remove_above(end_offset)
        self.sync()
        replace_file_by(self.files, segment.path, content)
        self.sync()
        self.readers.forget(segment.path)
        segment.writer = self.files.open(segment.path)
        segment.end_at(position + len(kept), end_offset)
        segment.use_index(segment.rebuild_index())

    def sync(self) -> None:
        self.files.sync_directory(self.directory)
