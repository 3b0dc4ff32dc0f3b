"""One partition's log: segments, of which the last is appended to.

It knows bytes, offsets and files. It does not know who may see what: the high watermark is an
argument (`end_offset`) wherever a reader must not look past it.

Threads: everything is called on one thread, the loop's, but for `SyncCapture.sync` and
`Removal.run`, which block and are made to run beside it.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from operator import attrgetter
from typing import Final

from tidemark.partitions.raft.entries import EpochStart
from tidemark.partitions.storage import retention, timestamps
from tidemark.partitions.storage.file_cache import FileCache
from tidemark.partitions.storage.files import File, Files
from tidemark.partitions.storage.home import LogHome
from tidemark.partitions.storage.index import GrowingIndex
from tidemark.partitions.storage.recovery import Observer, Recovery, RecoveryReport
from tidemark.partitions.storage.retention import Removal
from tidemark.partitions.storage.segment import Segment
from tidemark.partitions.storage.settings import LogSettings
from tidemark.partitions.storage.slices import EMPTY_SLICE, LogSlice
from tidemark.partitions.storage.syncing import (
    PendingSnapshot,
    SyncCapture,
    SyncState,
    TailSync,
)
from tidemark.partitions.storage.timestamps import TimestampAndOffset
from tidemark.protocol.errors import ErrorCode, RequestError, StorageError, TidemarkError
from tidemark.protocol.records.header import (
    LOG_OVERHEAD,
    PLACE,
    BatchHeader,
    iter_headers,
    read_header,
)
from tidemark.protocol.types import BytesLike, Epoch, Offset

_RELATIVE_OFFSET_MAX: Final = 2**31 - 1
_ZERO: Final = Offset(0)
_base_offset = attrgetter("base_offset")


class Log:
    """A sequence of batches with contiguous offsets, on disk.

    Invariant: `start_offset <= end_offset`; the segments' offsets are contiguous and reach from
    at most `start_offset` to `end_offset`.
    """

    __slots__ = (
        "_active",
        "_begun_end",
        "_doubted_from",
        "_home",
        "_index",
        "_is_ragged",
        "_sealed_bytes",
        "_segment_bytes",
        "_segments",
        "_settings",
        "_state",
        "_take_snapshot",
        "_unsynced",
        "end_offset",
        "recovery",
        "start_offset",
    )

    @classmethod
    def open(
        cls,
        files: Files,
        directory: str,
        settings: LogSettings,
        *,
        start_offset: Offset = _ZERO,
        recovery_point: Offset = _ZERO,
        epoch_max: Epoch | None = None,
        epochs: Sequence[EpochStart] | None = None,
        readers: FileCache | None = None,
        on_batch: Callable[[BatchHeader], None] | None = None,
        load_snapshot: Callable[[bytes], None] | None = None,
        take_snapshot: Callable[[], bytes] | None = None,
    ) -> "Log":
        """Open the log in a directory that exists, and recover what a crash left of it.

        `recovery_point`: below it, all is known to be on the disk (see `recovery`). It is
        recorded by the caller: after a clean `close`, the end offset; never above what a sync has
        returned; lowered before a truncation.
        `epoch_max`: the largest leader epoch that was ever opened, if known.
        `epochs`: the leader epochs of this log, ascending, if known: a batch above the recovery
        point whose epoch is not the one in force at its offset is of another history, and is cut.
        `readers`: files kept open for reading, shared by all logs of a process.
        `on_batch` gets every header that is in the log, in order, so that the caller can keep
        state that follows from it; `load_snapshot` is called at most once before, with what
        `take_snapshot` gave, and spares the headers below. `take_snapshot` is called within
        `append` and `close`, and has to answer for exactly the batches appended so far.

        Raises `StorageError` for files that cannot be served, which are left as they are.
        """
        home = LogHome(
            files=files,
            directory=directory,
            readers=readers if readers is not None else FileCache(files, open_max=8),
            interval_bytes=settings.index_interval_bytes,
        )
        recovery = Recovery(
            home,
            start_offset=start_offset,
            recovery_point=recovery_point,
            epoch_max=epoch_max,
            epochs=epochs,
            observer=Observer(load=load_snapshot, on_batch=on_batch) if on_batch else None,
        )
        segments = recovery.run()
        return cls(home, segments, settings, start_offset, recovery.report, take_snapshot)

    def __init__(
        self,
        home: LogHome,
        segments: list[Segment],
        settings: LogSettings,
        start_offset: Offset,
        recovery: RecoveryReport,
        take_snapshot: Callable[[], bytes] | None,
    ) -> None:
        """For `open`. The segments are contiguous, and on the disk."""
        self.start_offset = max(start_offset, segments[0].base_offset)
        self.end_offset = segments[-1].end_offset
        self.recovery = recovery
        self._home = home
        self._segments = segments
        self._sealed_bytes = sum(segment.size_bytes for segment in segments[:-1])
        self._active = segments[-1]
        # Of the active segment; loaded when it is first appended to.
        self._index = GrowingIndex(self._active.base_offset, home.interval_bytes)
        # The file may hold more than the segment: what a failed append left.
        self._is_ragged = False
        self._settings = settings
        self._segment_bytes = settings.segment_bytes
        self._take_snapshot = take_snapshot
        self._state = SyncState()
        # Complete segments of which something is not on the disk: bytes, or the indexes.
        self._unsynced = [segment for segment in segments[:-1] if segment.unsaved_index]
        self._begun_end = self.end_offset
        self._doubted_from: Offset | None = None

    def __repr__(self) -> str:
        return f"<Log {self._home.directory} {self.start_offset} to {self.end_offset}>"

    @property
    def directory(self) -> str:
        return self._home.directory

    @property
    def settings(self) -> LogSettings:
        """Settings may be changed at any time; those of the index keep to what is there."""
        return self._settings

    @settings.setter
    def settings(self, settings: LogSettings) -> None:
        self._settings = settings
        self._segment_bytes = settings.segment_bytes
        self._home = replace(self._home, interval_bytes=settings.index_interval_bytes)

    @property
    def size_bytes(self) -> int:
        """Of all segments' batches, without indexes."""
        return self._sealed_bytes + self._active.size_bytes

    @property
    def segment_count(self) -> int:
        return len(self._segments)

    @property
    def needs_sync(self) -> bool:
        """Whether a roll has left something to be written: worth a sync in the background,
        even where nobody waits for one, for it bounds what a crash makes the next start do."""
        return bool(self._unsynced or self._state.unfinished)

    # Appending

    def append(self, data: BytesLike) -> Offset:
        """Write whole batches, placed at `end_offset` and on, to the page cache; the new end.

        They are durable only when a capture begun later has been synced. On `OSError` (the disk
        is full) nothing was appended, and the log can be used as before.
        """
        header = read_header(data)
        assert header.base_offset == self.end_offset, "a batch placed elsewhere"
        if header.batch_length + LOG_OVERHEAD == len(data):
            return self._append_one(data, header)
        position = self._write(data, Offset(header.base_offset + header.last_offset_delta))
        self.end_offset = self._active.end_offset = end_offset = self._add_each(data, position)
        return end_offset

    def append_batch(
        self, data: bytearray | memoryview, header: BatchHeader, epoch: Epoch
    ) -> Offset:
        """Place a client's batch, of which this is the header, at the end; append it as `append`.

        `data` is changed: it gets its base offset and its epoch.
        """
        PLACE.pack_into(data, 0, self.end_offset, header.batch_length, epoch)
        return self._append_one(data, header)

    def append_placed(self, data: BytesLike, header: BatchHeader) -> Offset:
        """Append one batch that is placed at the end, and of which this is the header."""
        assert header.base_offset == self.end_offset, "a batch placed elsewhere"
        return self._append_one(data, header)

    def _append_one(self, data: BytesLike, header: BatchHeader) -> Offset:
        """The batch stands at `end_offset`, whatever the header says of that."""
        last_offset = Offset(self.end_offset + header.last_offset_delta)
        position = self._write(data, last_offset)
        self._index.add(position, len(data), last_offset, header.max_timestamp)
        self.end_offset = self._active.end_offset = end_offset = Offset(last_offset + 1)
        return end_offset

    def _write(self, data: BytesLike, last_offset: Offset) -> int:
        """Write batches behind the last one, or into a new segment; the position there."""
        active, size_bytes = self._active, len(data)
        position = active.size_bytes
        if position and (
            position + size_bytes > self._segment_bytes
            or last_offset - active.base_offset > _RELATIVE_OFFSET_MAX
        ):
            active, position = self._roll(), 0
        writer = active.writer
        if writer is None or self._is_ragged:
            writer = self._open_writer()
        try:
            writer.pwrite(data, position)
        except OSError:
            self._cut_back(writer)
            raise
        active.size_bytes = position + size_bytes
        return position

    def _add_each(self, data: BytesLike, position: int) -> Offset:
        end_offset, size_bytes = self.end_offset, 0
        for at, header in iter_headers(data):
            assert header.base_offset == end_offset, "batches with a gap between them"
            self._index.add(
                position + at, header.size_bytes, header.last_offset, header.max_timestamp
            )
            end_offset = header.next_offset
            size_bytes += header.size_bytes
        assert size_bytes == len(data), "an append that ends within a batch"
        return end_offset

    def _open_writer(self) -> File:
        """The active segment's file, which ends where the segment does."""
        self._refuse_after_failure()
        active = self._active
        if active.writer is None:
            active.writer = self._home.files.open(active.path)
            self._index = active.growing_index()
        if active.writer.size() != active.size_bytes:
            active.writer.truncate(active.size_bytes)
        self._is_ragged = False
        return active.writer

    def _cut_back(self, writer: File) -> None:
        """Remove what a failed append may have left: the next one must not follow half a batch."""
        self._is_ragged = True
        writer.truncate(self._active.size_bytes)
        self._is_ragged = False

    def _roll(self) -> Segment:
        """Begin a new segment. The old one is synced, and its indexes written, by the next sync."""
        self._refuse_after_failure()
        if self._is_ragged:
            self._open_writer()
        sealed, snapshot = self._active, None
        if self._take_snapshot is not None:
            snapshot = PendingSnapshot(self.end_offset, self._take_snapshot())
        # Last of what can fail: were the roll given up after it, the old segment would grow past
        # the offset where this one begins.
        active = self._home.create_segment(self.end_offset)
        if snapshot is not None:
            self._state.unsaved.append(snapshot)
        self._unsynced.append(sealed)
        self._sealed_bytes += sealed.size_bytes
        self._use_active(active)
        self._segments.append(active)
        return active

    def _use_active(self, active: Segment) -> None:
        self._active = active
        self._index = GrowingIndex(active.base_offset, self._home.interval_bytes)
        active.use_index(self._index)

    # Syncing

    def begin_sync(self) -> SyncCapture:
        """Capture what is not on the disk. Its `sync` must follow, in the order of captures."""
        self._refuse_after_failure()
        unfinished = [s for s in self._state.unfinished if not s.detached]
        self._state.unfinished = []
        self._unsynced = [*unfinished, *self._unsynced]
        files = [segment.writer for segment in self._unsynced if segment.writer is not None]
        if self._begun_end != self.end_offset and self._active.writer is not None:
            files.append(self._active.writer)
        capture = SyncCapture(
            home=self._home,
            state=self._state,
            generation=self._state.generation,
            files=tuple(files),
            sealed=tuple(self._unsynced),
            snapshots=tuple(self._state.unsaved),
            start_offset=self.start_offset,
            end_offset=self._certain_end,
        )
        self._unsynced = []
        self._begun_end = self.end_offset
        return capture

    def begin_tail_sync(self) -> TailSync:
        """What has to be synced for every batch to be on the disk."""
        files, unnamed = [], []
        for segment in reversed(self._segments):
            writer = segment.writer
            if writer is not None:
                files.append(writer)
            elif segment is not self._active and not segment.is_new:
                break
            if segment.is_new:
                unnamed.append(segment)
        return TailSync(
            home=self._home,
            state=self._state,
            files=tuple(reversed(files)),
            unnamed=tuple(unnamed),
        )

    def doubt(self, from_offset: Offset | None) -> None:
        """From there on the log may be another than its owner takes it for; `None`: it is not.

        What is in doubt is synced, and never said to be: so it lies above the recovery point,
        and the next opening checks it against the log's epochs.
        """
        self._doubted_from = from_offset

    @property
    def _certain_end(self) -> Offset:
        doubted_from = self._doubted_from
        return self.end_offset if doubted_from is None else min(self.end_offset, doubted_from)

    def sync(self) -> Offset:
        """Capture and sync on this thread; the end offset, which is durable now."""
        return self.begin_sync().sync()

    def _refuse_after_failure(self) -> None:
        if self._state.failure is not None:
            raise StorageError(
                f"{self._home.directory}: a sync failed ({self._state.failure}); nothing is known "
                "about the disk since. Start the broker again"
            )

    # Reading

    def read(
        self,
        offset: Offset,
        *,
        bytes_max: int,
        end_offset: Offset,
        at_least_one: bool = True,
    ) -> LogSlice:
        """Whole batches, from the one that holds `offset` on, to `end_offset` and `bytes_max`.

        With `at_least_one` the first batch is given whole, whatever its size (KIP-74). The slice
        ends with its segment, so it may be shorter than asked; it is empty only if there is
        nothing below `end_offset`, or nothing that fits. Raises `RequestError` for an offset
        outside of the log.
        """
        if not self.start_offset <= offset <= self.end_offset:
            raise RequestError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"offset {offset}; the log is {self.start_offset} to {self.end_offset}",
            )
        if offset >= end_offset:
            return EMPTY_SLICE
        return self._segment_of(offset).slice(
            offset, bytes_max=bytes_max, end_offset=end_offset, at_least_one=at_least_one
        )

    def _segment_of(self, offset: Offset) -> Segment:
        if offset >= self._active.base_offset:
            return self._active
        return self._segments[bisect_right(self._segments, offset, key=_base_offset) - 1]

    def find_timestamp(self, timestamp_ms: int, *, end_offset: Offset) -> TimestampAndOffset | None:
        """The first record below `end_offset` whose timestamp is this or later.

        Batches are decompressed to find it. Raises `CorruptBatch` if one cannot be.
        """
        return timestamps.first_at_or_after(
            self._segments, timestamp_ms, self.start_offset, end_offset
        )

    def max_timestamp(self, *, end_offset: Offset) -> TimestampAndOffset | None:
        """The first of the records below `end_offset` that have the largest timestamp."""
        return timestamps.largest(self._segments, self.start_offset, end_offset)

    # Removing

    def delete_before(self, offset: Offset, snapshot: bytes = b"") -> Removal:
        """Move the start to `offset`; the segments that are wholly below go.

        `snapshot` is of what the caller keeps of the batches below `offset`, and perhaps of some
        from there on that will never be cut: what is to be observed from `offset` on. It is
        written by the next sync. The caller makes both durable before, and runs the removal.
        """
        assert offset <= self.end_offset
        if offset > self.start_offset:
            self.start_offset = offset
            self._keep_below_start(snapshot)
        # The active segment stays, even when all of it is below the start.
        count = bisect_right(self._segments, self.start_offset, key=_base_offset) - 1
        return self._detach(count)

    def _keep_below_start(self, snapshot: bytes) -> None:
        if snapshot:
            self._state.unsaved.append(PendingSnapshot(self.start_offset, snapshot))

    def snapshot_at_start(self) -> bytes:
        """What the start was last moved with, or what there is to go on from there; or nothing."""
        start_offset = self.start_offset
        for pending in reversed(self._state.unsaved):
            if pending.offset == start_offset:
                return pending.payload
        return self._home.snapshots.load(start_offset) or b""

    def apply_retention(self, now_ms: int, *, end_offset: Offset) -> Offset:
        """Roll a segment that is old; where the log would begin if what the settings no longer
        keep were gone. Only whole segments below `end_offset` go.
        """
        files, settings = self._home.files, self._settings
        if retention.is_roll_due(files, self._active, settings, now_ms):
            self._roll()
        count = retention.expired_count(
            files,
            self._segments[:-1],
            settings,
            size_bytes=self.size_bytes,
            now_ms=now_ms,
            end_offset=end_offset,
        )
        return max(self.start_offset, self._segments[count].base_offset)

    def _detach(self, count: int) -> Removal:
        """Take the oldest segments out of the log; a reader that holds a slice keeps it."""
        removed = self._segments[:count]
        if removed:
            del self._segments[:count]
            with self._state.lock:
                for segment in removed:
                    segment.detached = True
            for segment in removed:
                segment.forget_files()
            self._sealed_bytes -= sum(segment.size_bytes for segment in removed)
            self._unsynced = [segment for segment in self._unsynced if not segment.detached]
        return Removal(self._home, tuple(removed))

    def truncate(self, offset: Offset) -> None:
        """Cut the log so that the batch that holds `offset` is no longer in it, nor any later.

        Blocking, and durable on return: an append that follows must not be mixed with what
        was there. The caller has lowered the recovery point before, and no capture is begun and
        unsynced. Raises `OSError`.
        """
        assert self.start_offset <= offset
        if offset >= self.end_offset:
            return
        with self._state.lock:
            self._state.generation += 1
            kept = max(1, bisect_right(self._segments, offset, key=_base_offset))
            for segment in reversed(self._segments[kept:]):
                self._home.remove_segment(segment)
            del self._segments[kept:]
            self._home.cut_segment(self._segments[-1], offset)
            self._use_cut(self._segments[-1])
            state = self._state
            state.unsaved = [s for s in state.unsaved if s.offset <= self.end_offset]
            state.unfinished = []
        self._unsynced = [s for s in self._segments[:-1] if s.unsaved_index or s.writer]

    def observe(
        self, *, load_snapshot: Callable[[bytes], None], on_batch: Callable[[BatchHeader], None]
    ) -> None:
        """Tell once more what opening tells: for state that a truncation has made wrong.

        `load_snapshot` is called at most once, then `on_batch` with every header behind it.
        """
        observed_to = self._load_snapshot(load_snapshot)
        for segment in self._segments:
            if segment.end_offset > observed_to:
                for _, header in segment.batches_from(segment.position_of(observed_to)):
                    on_batch(header)

    def _load_snapshot(self, load: Callable[[bytes], None]) -> Offset:
        snapshots = self._home.snapshots
        # The unsaved ones last: what moved the start goes before what a roll has left there.
        pending = {snapshot.offset: snapshot.payload for snapshot in self._state.unsaved}
        # Not below what the log's files hold: the batches in between are gone.
        first, end_offset = self._segments[0].base_offset, self.end_offset
        for offset in sorted({*snapshots.offsets(), *pending}, reverse=True):
            if first <= offset <= end_offset:
                payload = pending.get(offset) or snapshots.load(offset)
                if payload is not None:
                    with suppress(TidemarkError):
                        load(payload)
                        return offset
        return _ZERO

    def _use_cut(self, active: Segment) -> None:
        """Append to a segment that was cut."""
        self._active, self._index, self._is_ragged = active, active.growing_index(), False
        self._sealed_bytes = sum(segment.size_bytes for segment in self._segments[:-1])
        self.end_offset = self._begun_end = active.end_offset
        # It was within the batch, all of which went.
        self.start_offset = min(self.start_offset, self.end_offset)

    def reset(self, offset: Offset, snapshot: bytes = b"") -> None:
        """Give up all records and begin anew at `offset`. Blocking, and durable on return.

        For a replica whose log has nothing in common with its leader's. The caller has set the
        recovery point to 0 before, and records the start offset after. `snapshot` is as in
        `delete_before`.
        """
        with self._state.lock:
            self._state.generation += 1
            for segment in reversed(self._segments):
                segment.detached = True
                self._home.remove_segment(segment)
            self._home.snapshots.remove_above(Offset(-1))
            self._home.sync()
            active = self._home.create_segment(offset)
            self._home.sync()
            self._state.unsaved, self._state.unfinished = [], []
        self._use_active(active)
        self._segments, self._sealed_bytes, self._is_ragged = [active], 0, False
        self._unsynced = []
        self.start_offset = self.end_offset = self._begun_end = offset
        self._keep_below_start(snapshot)

    # Closing

    def close(self) -> Offset:
        """Sync, and write the indexes and a snapshot; the end offset, to record as recovery point.

        Blocking; the log must not be used afterwards.
        """
        changed = self._active.unsaved_index is not None and self._active.size_bytes > 0
        if changed and self._take_snapshot is not None:
            snapshot = PendingSnapshot(self.end_offset, self._take_snapshot())
            self._state.unsaved.append(snapshot)
        if changed:
            self._unsynced.append(self._active)
        end_offset = self.sync()
        self.abandon()
        return end_offset

    def abandon(self) -> None:
        """Let go of all files as they are; the log must not be used afterwards.

        For a partition that is deleted. A sync under way ends as if it had been done.
        """
        with self._state.lock:
            self._state.generation += 1
            self._state.unsaved, self._state.unfinished = [], []
        for segment in self._segments:
            segment.forget_files()
            segment.writer = None
