"""A segment is written anew: batches that stay, what is left of others, and gaps between them."""

from typing import Final

from tidemark.partitions.storage.compaction.reading import CHUNK_BYTES, Pace
from tidemark.partitions.storage.files import Files
from tidemark.partitions.storage.index import GrowingIndex
from tidemark.protocol.records.gaps import GAP_OFFSETS_MAX, gap_batch, is_gap
from tidemark.protocol.records.header import BatchHeader, read_header
from tidemark.protocol.types import NO_EPOCH, BytesLike, Epoch, Offset

_NOWHERE: Final = Offset(-1)


class SegmentRewriter:
    """Batches in the order of their offsets go into one new file; it is synced by `finish`."""

    def __init__(
        self, files: Files, path: str, base_offset: Offset, *, interval_bytes: int, pace: Pace
    ) -> None:
        self.size_bytes = 0
        self.index = GrowingIndex(base_offset, interval_bytes)
        self.is_changed = False
        """Whether anything is not as it was."""
        self._file = files.create(path)
        self._pace = pace
        self._parts: list[BytesLike] = []
        self._parts_bytes = 0
        # What is dropped at the end of what was written: it becomes one gap.
        self._gap_from = _NOWHERE
        self._gap_end = _NOWHERE
        self._gap_epoch = NO_EPOCH
        self._gap_batches = 0

    def keep(self, header: BatchHeader, batch: BytesLike) -> None:
        """The batch stays as it is."""
        self._end_gap()
        self._put(header, batch)

    def replace(self, batch: bytes) -> None:
        """A batch is written in another's place, with the same offsets."""
        self.is_changed = True
        self._end_gap()
        self._put(read_header(batch), batch)

    def drop(self, header: BatchHeader) -> None:
        """Nothing is left of the batch but its offsets."""
        epoch, end = header.partition_leader_epoch, header.next_offset
        if epoch != self._gap_epoch or end - self._gap_from > GAP_OFFSETS_MAX:
            self._end_gap()
            self._gap_from, self._gap_epoch = header.base_offset, epoch
        self._gap_end = end
        self._gap_batches += 1
        self.is_changed |= self._gap_batches > 1 or not is_gap(header)

    def finish(self) -> None:
        """Block until it is on the disk."""
        self._end_gap()
        self._flush()
        self._file.sync()

    def _end_gap(self) -> None:
        if self._gap_epoch != NO_EPOCH:
            batch = gap_batch(self._gap_from, self._gap_end, Epoch(self._gap_epoch))
            self._gap_epoch, self._gap_batches = NO_EPOCH, 0
            self._put(read_header(batch), batch)

    def _put(self, header: BatchHeader, batch: BytesLike) -> None:
        size_bytes = len(batch)
        self.index.add(
            self.size_bytes + self._parts_bytes,
            size_bytes,
            header.last_offset,
            header.max_timestamp,
        )
        self._parts.append(batch)
        self._parts_bytes += size_bytes
        if self._parts_bytes >= CHUNK_BYTES:
            self._flush()

    def _flush(self) -> None:
        if self._parts:
            self._file.pwritev(self._parts, self.size_bytes)
            self._pace(self._parts_bytes)
            self.size_bytes += self._parts_bytes
            self._parts, self._parts_bytes = [], 0
