"""What of a log is not on the disk yet, captured so that another thread can sync it."""

from tidemark.partitions.storage.log_appending import AppendingLog
from tidemark.partitions.storage.syncing import Capture, NothingToSync, SyncCapture, TailSync
from tidemark.protocol.types import Offset


class SyncingLog(AppendingLog):
    """A log whose end becomes durable; see `syncing` for what is captured."""

    __slots__ = ()

    def begin_sync(self) -> Capture:
        """Capture what is not on the disk. Its `sync` must follow, in the order of captures."""
        self._refuse_after_failure()
        if self._shared is None and not self._unsynced and self._begun_end == self.end_offset:
            return NothingToSync(self._certain_end)
        unfinished = tuple(s for s in self._state.unfinished if not s.detached)
        self._state.unfinished = ()
        self._unsynced = unfinished + self._unsynced
        files = [segment.writer for segment in self._unsynced if segment.writer is not None]
        if self._begun_end != self.end_offset and self._active.writer is not None:
            files.append(self._active.writer)
        unnamed = tuple(s for s in (*self._unsynced, self._active) if s.is_new)
        capture = SyncCapture(
            home=self._home,
            state=self._state,
            generation=self._state.generation,
            files=tuple(files),
            sealed=self._unsynced,
            unnamed=unnamed,
            snapshots=tuple(self._state.unsaved),
            start_offset=self.start_offset,
            end_offset=self._certain_end,
        )
        self._unsynced = ()
        self._begun_end, self._begun_bytes = self.end_offset, self._active.size_bytes
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
            generation=self._state.generation,
            files=tuple(reversed(files)),
            unnamed=tuple(unnamed),
        )

    def begin_early_sync(self) -> TailSync:
        """The bytes of the segment that is appended to, so that who has to sync it finds less.

        Nothing follows from it: not even the segment's name is on the disk then.
        """
        writer = self._active.writer
        return TailSync(
            home=self._home,
            state=self._state,
            generation=self._state.generation,
            files=() if writer is None else (writer,),
            unnamed=(),
            is_early=True,
        )

    def sync(self) -> Offset:
        """Capture and sync on this thread; the end offset, which is durable now."""
        return self.begin_sync().sync()
