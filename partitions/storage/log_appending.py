"""Writing to a log's end: batch behind batch, segment behind segment."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from tidemark.partitions.storage import retention
from tidemark.partitions.storage.files import File
from tidemark.partitions.storage.index import RELATIVE_OFFSET_MAX, GrowingIndex
from tidemark.partitions.storage.log_state import NOT_KNOWN_MS, LogState
from tidemark.partitions.storage.segment import Segment
from tidemark.partitions.storage.syncing import PendingSnapshot
from tidemark.protocol.records.header import (
    LOG_OVERHEAD,
    PLACE,
    BatchHeader,
    Fields,
    iter_headers,
    read_header,
)
from tidemark.protocol.types import BytesLike, Epoch, Offset

_MAX_TIMESTAMP: Final = BatchHeader._fields.index("max_timestamp")


class AppendingLog(LogState):
    """A log that takes batches, into the page cache."""

    __slots__ = ()

    def append(self, data: BytesLike) -> Offset:
        """Write whole batches, placed at `end_offset` and on, to the page cache; the new end.

        They are durable only when a capture begun later has been synced. On `OSError` (the disk
        is full) nothing was appended, and the log can be used as before.
        """
        header = read_header(data)
        assert header.base_offset == self.end_offset, "a batch placed elsewhere"
        if header.batch_length + LOG_OVERHEAD == len(data):
            return self._append_one(data, header)
        headers = [each for _, each in iter_headers(data)]
        assert sum(each.size_bytes for each in headers) == len(data), "it ends within a batch"
        for before, after in pairwise(headers):
            assert before.next_offset == after.base_offset, "batches with a gap between them"
        return self.append_placed(data, headers)

    def append_run(
        self,
        batches: Sequence[bytearray | memoryview],
        headers: Sequence[Fields],
        epoch: Epoch,
    ) -> Offset:
        """Place clients' batches, of which these are the headers, at the end, one behind the other,
        and append them as `append` does, in one write: all of them or none.

        They are changed: each gets its base offset and the epoch. More than one are only what
        `has_room_for` was asked about.
        """
        if len(batches) == 1:
            _, length, _, _, _, _, delta, _, timestamp_ms, _, _, _, _ = headers[0]
            return self.append_one(batches[0], length, delta, timestamp_ms, epoch)
        offset, size_bytes = self.end_offset, 0
        for data, (_, length, _, _, _, _, delta, _, _, _, _, _, _) in zip(
            batches, headers, strict=True
        ):
            PLACE.pack_into(data, 0, offset, length, epoch)
            offset = Offset(offset + delta + 1)
            size_bytes += length + LOG_OVERHEAD
        last_ms = headers[-1][_MAX_TIMESTAMP]
        position = self._write(batches, size_bytes, Offset(offset - 1), last_ms)
        self._index.add_run(position, self.end_offset, headers)
        self.end_offset = self._active.end_offset = offset
        return offset

    def append_one(
        self,
        data: bytearray | memoryview,
        length: int,
        delta: int,
        timestamp_ms: int,
        epoch: Epoch,
    ) -> Offset:
        """As `append_run`, of one batch; what of its header matters here."""
        base_offset, size_bytes = self.end_offset, len(data)
        PLACE.pack_into(data, 0, base_offset, length, epoch)
        last_offset = Offset(base_offset + delta)
        position = self._write((data,), size_bytes, last_offset, timestamp_ms)
        self._index.add(position, size_bytes, last_offset, timestamp_ms)
        self.end_offset = self._active.end_offset = end_offset = Offset(last_offset + 1)
        return end_offset

    def has_room_for(self, size_bytes: int, record_count: int, last_ms: int) -> bool:
        """Whether batches with so much in them, the last of that time, would all lie in the segment
        that is appended to."""
        active = self._active
        return (
            active.size_bytes + size_bytes <= self._segment_bytes
            and self.end_offset + record_count - active.base_offset <= RELATIVE_OFFSET_MAX
            and (last_ms <= self._rolls_above_ms or not self._is_roll_due(last_ms))
        )

    def append_placed(self, data: BytesLike, headers: Sequence[BatchHeader]) -> Offset:
        """Append batches that are placed at the end, back to back: these are their headers, all of
        them checked."""
        assert headers[0].base_offset == self.end_offset, "a batch placed elsewhere"
        if len(headers) == 1:
            return self._append_one(data, headers[0])
        last = headers[-1]
        end_offset = last.next_offset
        position = self._write((data,), len(data), last.last_offset, last.max_timestamp)
        self._index.add_run(position, self.end_offset, headers)
        self.end_offset = self._active.end_offset = end_offset
        return end_offset

    def _append_one(self, data: BytesLike, header: BatchHeader) -> Offset:
        """The batch stands at `end_offset`, whatever the header says of that."""
        last_offset = Offset(self.end_offset + header.last_offset_delta)
        position = self._write((data,), len(data), last_offset, header.max_timestamp)
        self._index.add(position, len(data), last_offset, header.max_timestamp)
        self.end_offset = self._active.end_offset = end_offset = Offset(last_offset + 1)
        return end_offset

    def _write(
        self, parts: Sequence[BytesLike], size_bytes: int, last_offset: Offset, last_ms: int
    ) -> int:
        """Write batches behind the last one, or into a new segment; the position there. `last_ms`:
        the time of the last."""
        if self.room.is_out:
            raise self.room.refusal()
        active = self._active
        position = active.size_bytes
        if position and (
            position + size_bytes > self._segment_bytes
            or last_offset - active.base_offset > RELATIVE_OFFSET_MAX
            or (last_ms > self._rolls_above_ms and self._is_roll_due(last_ms))
        ):
            active, position = self._roll(), 0
        writer = active.writer
        if writer is None or self._is_ragged:
            writer = self._open_writer()
        try:
            if len(parts) == 1:
                writer.pwrite(parts[0], position)
            else:
                writer.pwritev(parts, position)
        except OSError:
            self._cut_back(writer)
            raise
        active.size_bytes = position + size_bytes
        self.room.took(size_bytes)
        return position

    def _is_roll_due(self, timestamp_ms: int) -> bool:
        """Whether a batch of that time begins a new segment. Asked where it is above what is known
        of that, which is nothing until the second append to a segment."""
        active = self._active
        if not active.size_bytes:
            return False
        if self._rolls_above_ms == NOT_KNOWN_MS:
            files, settings = self._home.files, self._settings
            self._rolls_above_ms = retention.rolls_above_ms(files, active, settings)
        return timestamp_ms > self._rolls_above_ms

    def _open_writer(self) -> File:
        """The active segment's file, which ends where the segment does."""
        self._refuse_after_failure()
        active = self._active
        if active.writer is None:
            active.writer = self._home.files.open(active.path)
            self._index = active.growing_index()
            if not active.size_bytes:
                self._distrust_end_before()
        if active.writer.size() != active.size_bytes:
            active.writer.truncate(active.size_bytes)
        self._is_ragged = False
        return active.writer

    def _distrust_end_before(self) -> None:
        """The segment that is appended to was empty when the log was opened: whoever made it may
        have died before a sync of the end of the one before it.

        That end is where it was seen, and need not be so on the disk: of a batch that found no room
        a part may be there, which was cut off, and comes back with a loss of power. So what is to
        be behind it is durable only once it is. (Of the new one's name the recovery has seen to.)
        """
        for segment in self._segments[-2:-1]:
            if segment.writer is None:
                segment.writer = self._home.files.open(segment.path)
            if segment not in self._unsynced:
                self._unsynced += (segment,)

    def _cut_back(self, writer: File) -> None:
        """Remove what a failed append may have left: the next one must not follow half a batch."""
        self._is_ragged = True
        writer.truncate(self._active.size_bytes)
        self._is_ragged = False

    def _roll(self) -> Segment:
        """Begin a new segment. The old one is synced, and its indexes written, by the next sync."""
        self._refuse_after_failure()
        # Also one that nothing was written to since the opening: its end may not be on the disk, as
        # in `_distrust_end_before`, and is synced with what comes behind it.
        if self._active.writer is None:
            self._open_writer()
        sealed, snapshot = self._active, None
        if self._take_snapshot is not None:
            snapshot = PendingSnapshot(self.end_offset, self._take_snapshot())
        self._end_file(sealed)
        # It may have been complete before, and was cut, and has grown.
        sealed.is_synced = False
        self._is_ragged = False
        # Last of what can fail: were the roll given up after it, the old segment would grow past
        # the offset where this one begins.
        active = self._home.create_segment(self.end_offset, recycled=self._state.recycled)
        if snapshot is not None:
            self._state.unsaved.append(snapshot)
        self._unsynced += (sealed,)
        self._sealed_bytes += sealed.size_bytes
        self._use_active(active)
        self._segments.append(active)
        return active

    def _end_file(self, segment: Segment) -> None:
        """Nothing is appended to it any more, or not by this process: what is behind it goes, of a
        recycled file or of a batch that was not written whole."""
        writer = segment.writer
        if writer is not None and writer.size() > segment.size_bytes:
            writer.truncate(segment.size_bytes)

    def _use_active(self, active: Segment) -> None:
        self._active, self._begun_bytes = active, active.size_bytes
        self._rolls_above_ms = NOT_KNOWN_MS
        self._index = GrowingIndex(active.base_offset, self._home.interval_bytes)
        active.use_index(self._index)
