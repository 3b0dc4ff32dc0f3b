"""One partition's log: segments, of which the last is appended to.

It knows bytes, offsets and files. It does not know who may see what: the high watermark is an
argument (`end_offset`) wherever a reader must not look past it.

Threads: everything is called on one thread, the loop's, but for `SyncCapture.sync` and
`Removal.run`, which block and are made to run beside it.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Final

from tidemark.partitions.raft.entries import EpochStart
from tidemark.partitions.storage import retention
from tidemark.partitions.storage.derived_state import DerivedState
from tidemark.partitions.storage.file_cache import FileCache
from tidemark.partitions.storage.files import Files
from tidemark.partitions.storage.home import LogHome
from tidemark.partitions.storage.log_compacting import CompactingLog
from tidemark.partitions.storage.log_reading import base_offset_of
from tidemark.partitions.storage.log_state import NOT_KNOWN_MS
from tidemark.partitions.storage.recovery import Recovery
from tidemark.partitions.storage.retention import Removal
from tidemark.partitions.storage.segment import Segment
from tidemark.partitions.storage.settings import LogSettings
from tidemark.partitions.storage.syncing import PendingSnapshot
from tidemark.protocol.records.header import BatchHeader
from tidemark.protocol.types import Epoch, Offset

_ZERO: Final = Offset(0)


class Log(CompactingLog):
    """A sequence of batches with contiguous offsets, on disk.

    How it is written, synced and read is in the classes it comes from; here is how it begins and
    ends, and what is cut off it.
    """

    __slots__ = ()

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
        on_control: Callable[[BatchHeader, bytes], None] | None = None,
        load_snapshot: Callable[[bytes], None] | None = None,
        take_snapshot: Callable[[], bytes] | None = None,
        unsynced: list[str] | None = None,
        may_begin_later: bool = False,
        may_end_earlier: bool = False,
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
        state that follows from it; `on_control` gets control batches instead, with their bytes, and
        raises `StorageError` if they are none. `load_snapshot` is called at most once before, with
        what `take_snapshot` gave, and spares the headers below. `take_snapshot` is called within
        `append` and `close`, and has to answer for exactly the batches appended so far.
        `unsynced`, if given, gets the directory of a log that begins anew, for the caller to sync
        before anything is recorded: of many, that is done best when all are made.
        `may_begin_later`: where it began last may have been in what the journal has lost.
        `may_end_earlier`: that it was cut, to follow another log, may have been in there as well.
        What it holds behind such a cut is of other epochs than `epochs` says, and is cut, too.

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
            state=(
                DerivedState(load=load_snapshot, on_batch=on_batch, on_control=on_control)
                if on_batch
                else None
            ),
            unsynced=unsynced,
            may_begin_later=may_begin_later,
            may_end_earlier=may_end_earlier,
        )
        segments = recovery.run()
        return cls(home, segments, settings, recovery.start_offset, recovery.report, take_snapshot)

    # Removing

    def delete_before(self, offset: Offset, snapshot: bytes = b"") -> Removal:
        """Move the start to `offset`; the segments that are wholly below go.

        `snapshot` is the caller's state after the batches below `offset`, and perhaps after some
        that follow and will never be cut: what an opening begins with from then on. It is written
        by the next sync. The caller has made offset and snapshot durable (in the journal) before,
        and runs the removal.
        """
        assert offset <= self.end_offset
        if offset > self.start_offset:
            self.start_offset = offset
            self._keep_below_start(snapshot)
        if self._is_swapping:
            return Removal.of(self._home, self._state, ())  # `sweep` is called when it is done
        return self.sweep()

    def sweep(self) -> Removal:
        """Take out the segments that are wholly below the start."""
        # The active segment stays, even when all of it is below the start.
        count = bisect_right(self._segments, self.start_offset, key=base_offset_of) - 1
        return self._detach(count)

    def _keep_below_start(self, snapshot: bytes) -> None:
        if snapshot:
            self._state.unsaved.append(PendingSnapshot(self.start_offset, snapshot))

    def apply_retention(self, now_ms: int, *, end_offset: Offset) -> Offset:
        """Roll a segment that is old; where the log would begin if what the settings no longer
        keep were gone. Only whole segments below `end_offset` go.
        """
        files, settings = self._home.files, self._settings
        if retention.is_roll_due(files, self._active, settings, now_ms):
            self._roll()
        if self._is_swapping:
            return self.start_offset  # a file whose time is to be asked may be without its name
        count = retention.expired_count(
            files,
            self._segments[:-1],
            settings,
            active=self._active,
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
                segment.writer = None
            self._sealed_bytes -= sum(segment.size_bytes for segment in removed)
            self._unsynced = tuple(each for each in self._unsynced if not each.detached)
        return Removal.of(
            self._home,
            self._state,
            tuple(removed),
            recycled_batch_bytes=self._recycled_batch_bytes(removed),
        )

    def _recycled_batch_bytes(self, removed: Sequence[Segment]) -> int:
        """What a batch has to have on average for the last of these files to be kept; -1: none is
        worth it, or may be."""
        is_large = bool(removed) and 2 * removed[-1].size_bytes >= self._segment_bytes
        return self._settings.recycled_batch_bytes if is_large and not self.room.is_out else -1

    def truncate(self, offset: Offset) -> None:
        """Cut the log so that the batch that holds `offset` is no longer in it, nor any later.

        Blocking, and durable on return: an append that follows must not be mixed with what
        was there. The caller has lowered the recovery point before, and no capture is begun and
        unsynced. Raises `OSError`.
        """
        assert self.start_offset <= offset
        if offset >= self.end_offset:
            return
        self._forget_cleaned_above(offset)
        with self._state.lock:
            self._settle_swap_locked()
            self._state.generation += 1
            kept = max(1, bisect_right(self._segments, offset, key=base_offset_of))
            for segment in reversed(self._segments[kept:]):
                self._home.remove_segment(segment)
            del self._segments[kept:]
            self._home.cut_segment(self._segments[-1], offset)
            self._use_cut(self._segments[-1])
            state = self._state
            state.unsaved = [s for s in state.unsaved if s.offset <= self.end_offset]
            state.unfinished = ()
        self._unsynced = tuple(s for s in self._segments[:-1] if s.unsaved_index or s.writer)

    def _use_cut(self, active: Segment) -> None:
        """Append to a segment that was cut."""
        self._active, self._index, self._is_ragged = active, active.growing_index(), False
        self._rolls_above_ms = NOT_KNOWN_MS
        self._sealed_bytes = sum(segment.size_bytes for segment in self._segments[:-1])
        self.end_offset = self._begun_end = active.end_offset
        self._begun_bytes = active.size_bytes
        # The start may have been within the batch that was cut: all of it went.
        self.start_offset = min(self.start_offset, self.end_offset)

    def reset(self, offset: Offset, snapshot: bytes = b"") -> None:
        """Give up all records and begin anew at `offset`. Blocking, and durable on return.

        For a replica whose log has nothing in common with its leader's. The caller has set the
        recovery point to 0 before, and records the start offset after. `snapshot` is as in
        `delete_before`. A removal that is not done yet has nothing left to remove.
        """
        self._forget_cleaned_above(Offset(-1))
        with self._state.lock:
            self._settle_swap_locked()
            self._state.end_locked()
            for segment in self._segments:
                segment.detached = True
                segment.forget_files()
            self._state.recycled.drop()
            self._home.remove_segments()
            self._home.snapshots.remove_above(Offset(-1))
            self._home.sync()
            active = self._home.create_segment(offset)
            self._home.sync()
            active.is_new = False
        self._use_active(active)
        self._segments, self._sealed_bytes, self._is_ragged = [active], 0, False
        self._unsynced = ()
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
            self._unsynced += (self._active,)
        self._end_file(self._active)
        if self._shared is not None:
            self._shared.recycled.drop()
        end_offset = self.sync()
        self.abandon()
        return end_offset

    def abandon(self) -> None:
        """Let go of all files as they are; the log must not be used afterwards.

        For a partition that is deleted: what is at its paths may be another's afterwards. A sync
        under way ends as if it had been done, and so does a removal.
        """
        with self._state.lock:
            self._state.end_locked()
            self._state.is_given_up = True
        self._state.recycled.give_up()
        for segment in self._segments:
            segment.forget_files()
            segment.writer = segment.pinned = None
