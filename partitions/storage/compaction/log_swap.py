"""One swap of a log that is in use: its files, and its segments in memory.

| on | step | |
|----|------|-|
| the loop | `Log.begin_swap` | what is to be replaced is still there |
| a thread | `commit` | from here on a start would find the new segment |
| the loop | `Log.adopt` | readers that come find the new one; those under way keep the old files |
| a thread | `finish` | the old files go, the new one gets its name |

Whatever cuts or resets the log in between changes the generation of its files. Before the commit,
that ends the swap; after it, the swap is finished first.
"""

from tidemark.partitions.storage.compaction.job import Rewritten
from tidemark.partitions.storage.compaction.names import (
    SwapRange,
    new_index_path,
    new_log_path,
    new_time_index_path,
)
from tidemark.partitions.storage.compaction.swapping import (
    commit_swap,
    finish_swap,
    give_up_swap,
    undo_commit,
)
from tidemark.partitions.storage.files import read_file
from tidemark.partitions.storage.home import LogHome
from tidemark.partitions.storage.index import GrowingIndex
from tidemark.partitions.storage.segment import Segment
from tidemark.partitions.storage.syncing import NotTaken, SyncState, final, sync_names


class LogSwap:
    """For `Log.begin_swap`."""

    def __init__(
        self, home: LogHome, state: SyncState, old: tuple[Segment, ...], rewritten: Rewritten
    ) -> None:
        self.old = old
        self.new = home.segment(
            rewritten.base_offset,
            end_offset=rewritten.end_offset,
            size_bytes=rewritten.size_bytes,
        )
        self.is_committed = False
        self.is_adopted = False
        self._range = SwapRange(rewritten.base_offset, rewritten.end_offset)
        self._home = home
        self._state = state
        self._generation = state.generation

    def commit(self) -> bool:
        """Have the new segment count; whether it does. Blocking, and durable on return.

        Raises `OSError`. Unless the log has failed by it, the new segment does not count.
        """
        self._open_new()
        with self._state.lock:
            if self._state.generation != self._generation:
                give_up_swap(self._home.files, self._home.directory, self._range)
                return False
            commit_swap(self._home.files, self._home.directory, self._range)
            try:
                self._sync()
            except NotTaken:
                undo_commit(self._home.files, self._home.directory, self._range)
                raise
            self.is_committed = True
            return True

    def finish(self) -> bool:
        """Remove the old files; whether the log is still what it was. Blocking.

        Raises `OSError`. Unless the log has failed by it, it is to be tried again: until then the
        log is neither compacted nor trimmed.
        """
        with self._state.lock:
            if self._state.generation != self._generation:
                return False
            self.finish_locked()
            return True

    def finish_locked(self) -> None:
        """As `finish`, by who holds the lock. Twice is allowed."""
        if self._state.swap is self:
            finish_swap(self._home.files, self._home.directory, self._range, self._sync)
            self._state.swap = None
            self.new.use_index(None)
            self.new.pinned = None

    def _sync(self) -> None:
        with final(self._state):
            sync_names(self._home)

    def _open_new(self) -> None:
        """Until its files have their names it is read by this handle, its index is in memory."""
        files, place = self._home.files, (self._home.directory, *self._range)
        self.new.pinned = files.open_reader(new_log_path(*place))
        index = GrowingIndex.decode(
            self._range.base_offset,
            self._home.interval_bytes,
            read_file(files, new_index_path(*place)),
            read_file(files, new_time_index_path(*place)),
        )
        self.new.use_index(index)
