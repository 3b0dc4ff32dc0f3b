"""Making a log durable on another thread than the one that appends to it.

The loop's thread captures what is dirty, the writer thread syncs the capture, and the loop is told
up to where the log is durable then. Appends go on meanwhile, and are in the next capture. Captures
are synced in the order in which they were made.

A `TailSync` is smaller: it is for batches that are to be durable now, is independent of captures,
and leaves everything but the batches to them.
"""

from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from threading import Lock
from typing import TYPE_CHECKING, TypeAlias

from tidemark.partitions.storage.files import File, replace_file
from tidemark.partitions.storage.home import LogHome
from tidemark.partitions.storage.recycled_file import RecycledFile
from tidemark.partitions.storage.refusals import may_pass, was_not_asked
from tidemark.partitions.storage.segment import Segment
from tidemark.protocol.types import Offset
from tidemark.protocol.values import dataclass

if TYPE_CHECKING:
    from tidemark.partitions.storage.compaction.log_swap import LogSwap


class NotTaken(OSError):
    """The disk is full, say, or there is no descriptor: what is beside the batches could not be
    written, or no sync of their names begun, and will be later."""


@dataclass(slots=True)
class SyncState:
    """What the two threads share. All but `failure` is read and changed under the lock."""

    recycled: RecycledFile
    """For the next segment. It has a lock of its own."""
    lock: Lock = field(default_factory=Lock)
    generation: int = 0
    """Changes when the log's files are cut or go away: what was captured before is not saved."""
    beginnings: int = 0
    """Changes when the log begins anew, and when it is given up: files that bear the names of
    those before may be its new ones then, or another log's."""
    unsaved: list["PendingSnapshot"] = field(default_factory=list)
    """Snapshots of what is in the log, taken and not yet written. Added to without the lock."""
    unfinished: tuple[Segment, ...] = ()
    """Complete ones that were captured, whose indexes were not taken."""
    swap: "LogSwap | None" = None
    """The segments that are being replaced, until the files of the old ones are gone. Set on the
    loop, without the lock."""
    failure: OSError | None = None
    """The sync that failed. Nothing is known about the disk after it, so none follows."""
    is_given_up: bool = False
    """What is at the log's paths may be another's, and its directory may be gone."""

    def end_locked(self) -> None:
        """By who holds the lock: nothing of what was captured so far, nor of what was detached, is
        the log's any more."""
        self.beginnings += 1
        self.generation += 1
        self.unsaved, self.unfinished = [], ()


@dataclass(frozen=True, slots=True, eq=False)
class PendingSnapshot:
    """A snapshot that was taken and not yet written. Each is itself: two may say the same."""

    offset: Offset
    payload: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncCapture:
    """What of a log was dirty at one moment."""

    home: LogHome
    state: SyncState
    generation: int
    files: tuple[File, ...]
    """With unsynced bytes; older segments first."""
    ends: tuple[int, ...]
    """Of each, where what was written ends."""
    sealed: tuple[Segment, ...]
    """Rolled since the last capture: their indexes are complete now, and are written; and the
    names of the segments that followed them are not yet on the disk."""
    unnamed: tuple[Segment, ...]
    """Of which even the name may not be."""
    snapshots: tuple[PendingSnapshot, ...]
    """Unsaved then, of batches that are in these files or were synced before."""
    start_offset: Offset
    end_offset: Offset

    def sync(self) -> Offset:
        """Block until it is on the disk; the end offset that is durable then.

        Raises `OSError` when the disk does not take it. That is final: the kernel may have
        dropped the pages, and would report success if it were asked again. Only `NotTaken` is not:
        the batches are on the disk then, and the next capture has what could not be written.
        """
        with final(self.state):
            for file, end in zip(self.files, self.ends, strict=True):
                file.write_back(end)
                file.sync()
        if self.sealed or self.snapshots or self.unnamed:
            self._finish()
        return self.end_offset

    def _finish(self) -> None:
        """Write what rolls and moves of the start left to be written, then make all names durable.

        What was cut since is not in the state any more, so what is left there holds.
        """
        with self.state.lock:
            is_as_it_was = self.generation == self.state.generation
            sealed, unnamed = (self.sealed, self.unnamed) if is_as_it_was else ((), ())
            saved = [snapshot for snapshot in self.snapshots if snapshot in self.state.unsaved]
            with final(self.state):
                try:
                    self._write(sealed, saved)
                    if sealed or saved or unnamed:
                        sync_names(self.home)
                except NotTaken:
                    self.state.unfinished += sealed
                    raise
            # Only now: a segment without a writer counts as one that is on the disk, name and all.
            for segment in sealed:
                segment.writer = None
            for segment in unnamed:
                segment.is_new = False
            for snapshot in saved:
                self.state.unsaved.remove(snapshot)

    def _write(self, sealed: tuple[Segment, ...], snapshots: Sequence[PendingSnapshot]) -> None:
        try:
            for segment in sealed:
                save_index(self.home, segment)
            for snapshot in snapshots:
                self.home.snapshots.save(
                    snapshot.offset, snapshot.payload, log_start=self.start_offset
                )
        except OSError as error:
            # Also a sync without room: what it was for is written anew, under another name.
            if may_pass(error):
                raise NotTaken(*error.args) from error
            raise


@dataclass(frozen=True, slots=True)
class NothingToSync:
    """A capture of a log of which all is on the disk."""

    end_offset: Offset

    def sync(self) -> Offset:
        return self.end_offset


Capture: TypeAlias = SyncCapture | NothingToSync


@contextmanager
def final(state: SyncState) -> Iterator[None]:
    """Whatever the disk refuses in this block is final: the log is not synced again."""
    try:
        yield
    except NotTaken:
        raise
    except OSError as error:
        state.failure = error
        raise


@dataclass(frozen=True, slots=True, kw_only=True)
class TailSync:
    """The end of a log, where not all of it is known to be on the disk."""

    home: LogHome
    state: SyncState
    generation: int
    files: tuple[File, ...]
    """Of which something may not be."""
    ends: tuple[int, ...]
    """Of each, where what was written ends."""
    sealed: tuple[Segment, ...]
    """Those of them that were complete."""
    unnamed: tuple[Segment, ...]
    """Of which even the name may not be."""
    is_early: bool = False
    """Nobody waits for it, and others that do had better not wait longer."""

    @property
    def subject(self) -> Hashable:
        """Stands for the log: of several syncs of one subject, the last covers the others."""
        return id(self.state)

    def begin(self) -> None:
        """Have the disk begin with it. Raises `OSError`, which is final as that of a capture."""
        if self.state.failure is None:
            with final(self.state):
                for file in self.files:
                    file.begin_writing()

    def run(self) -> None:
        """Block until every batch is on the disk that was in the log when this was made.

        Raises `OSError`, which is final as that of a capture, and is raised again after one.
        `NotTaken` is not, and may be tried again.
        """
        if self.state.failure is not None:
            raise self.state.failure
        with final(self.state):
            for file, end in zip(self.files, self.ends, strict=True):
                if self.is_early:
                    file.write_back(end)
                file.sync()
        if self.sealed or self.unnamed:
            self._note_synced()

    def _note_synced(self) -> None:
        """That these are on the disk; their names, too, where they are new."""
        with self.state.lock:
            # Who has cut the log since has synced them; and the directory of one that was given up
            # has another name, or is gone.
            if self.generation != self.state.generation:
                return
            for segment in self.sealed:
                segment.is_synced = True
            if self.unnamed:
                with final(self.state):
                    sync_names(self.home)
            for segment in self.unnamed:
                segment.is_new = False


def sync_names(home: LogHome) -> None:
    """Sync the directory. Raises `NotTaken` if that has not begun, and may be tried again."""
    try:
        home.sync()
    except OSError as error:
        if was_not_asked(error):
            raise NotTaken(*error.args) from error
        raise


def save_index(home: LogHome, segment: Segment) -> None:
    """Write a complete segment's indexes, and look things up in the files from now on."""
    index = segment.unsaved_index
    if index is None or segment.detached:
        return
    replace_file(home.files, segment.index_path, index.encode())
    replace_file(home.files, segment.time_index_path, index.encode_times())
    segment.use_index(None)
