"""What of a log is not on the disk yet, captured so that another thread can sync it."""

from collections.abc import Sequence
from typing import Final

from tidemark.partitions.storage.files import File
from tidemark.partitions.storage.log_appending import AppendingLog
from tidemark.partitions.storage.segment import Segment
from tidemark.partitions.storage.syncing import Capture, NothingToSync, SyncCapture, TailSync
from tidemark.protocol.types import Offset
from tidemark.protocol.values import maker_of

# Made for every large request that is synced.
_made_tail_sync: Final = maker_of(TailSync)


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
        dirty = list(self._unsynced)
        if self._begun_end != self.end_offset:
            dirty.append(self._active)
        files, ends = _files_of(dirty)
        unnamed = tuple(s for s in (*self._unsynced, self._active) if s.is_new)
        capture = SyncCapture(
            home=self._home,
            state=self._state,
            generation=self._state.generation,
            files=files,
            ends=ends,
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
        """What has to be synced for every batch to be on the disk. That a complete segment was
        synced so is remembered: until its index is written, too, groups by the hundred may come."""
        active = self._active
        if not active.is_new and self._is_saved_before_active:
            return self._tail_sync((active,))  # nearly always
        dirty, unnamed = [], []
        for segment in reversed(self._segments):
            if segment.writer is not None:
                if not segment.is_synced:
                    dirty.append(segment)
            elif segment is not active and not segment.is_new:
                break
            if segment.is_new:
                unnamed.append(segment)
        dirty.reverse()
        return self._tail_sync(
            dirty,
            sealed=tuple(segment for segment in dirty if segment is not active),
            unnamed=tuple(unnamed),
        )

    @property
    def _is_saved_before_active(self) -> bool:
        """Whether nothing is left to be done about the segments before the one that is appended
        to."""
        if len(self._segments) == 1:
            return True
        before = self._segments[-2]
        return before.writer is None and not before.is_new

    def begin_early_sync(self) -> TailSync:
        """The bytes of the segment that is appended to, so that who has to sync it finds less.

        Nothing follows from it: not even the segment's name is on the disk then.
        """
        return self._tail_sync((self._active,), is_early=True)

    def _tail_sync(
        self,
        dirty: Sequence[Segment],
        *,
        sealed: tuple[Segment, ...] = (),
        unnamed: tuple[Segment, ...] = (),
        is_early: bool = False,
    ) -> TailSync:
        files, ends = _files_of(dirty)
        return _made_tail_sync(
            home=self._home,
            state=self._state,
            generation=self._state.generation,
            files=files,
            ends=ends,
            sealed=sealed,
            unnamed=unnamed,
            is_early=is_early,
        )

    def sync(self) -> Offset:
        """Capture and sync on this thread; the end offset, which is durable now."""
        return self.begin_sync().sync()


def _files_of(segments: Sequence[Segment]) -> tuple[tuple[File, ...], tuple[int, ...]]:
    """Of those that are being written, and where each ends."""
    if len(segments) == 1 and (writer := segments[0].writer) is not None:
        return (writer,), (segments[0].size_bytes,)
    written = [(s.writer, s.size_bytes) for s in segments if s.writer is not None]
    return tuple(file for file, _ in written), tuple(end for _, end in written)
