"""The group commit: which writes are done and synced at once, and who hears of it when.

What a turn wants to be durable is one write of journal records. While some are being written, those
that come wait; all that waits is the next group. So a busy disk makes the groups larger and not the
queue longer.

What an order of events could break is decided here:

1. one group is being written at a time, and the writes of a group are durable in their order;
2. once one is durable, the next is begun before the last is told of: the disk works while what
   waited for it is answered. One that has files to sync is even taken by who has written the last,
   before anybody has heard of that; a little had better wait for what comes until then;
3. what a group's records rely on is synced once for the group, by then with all that the group has
   of it;
4. once something has failed, nothing is handed over and nothing told, not of what is being written
   then either, whatever becomes of it.

It refuses to know who writes: a thread or the loop (`broker/replicas/disk.py`), or what a simulator
plays. Nor does it know of time. Writes come, and are told of, on one thread; `take` is for that
which writes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import field
from threading import Lock
from typing import Protocol

from tidemark.partitions.storage.journal.records import JournalRecord
from tidemark.protocol.values import dataclass


class Synced(Protocol):
    """Files that are to be on the disk before the journal says so. Both raise `OSError`."""

    @property
    def subject(self) -> Hashable:
        """Whose files these are: what is made later for the same covers all of this."""
        ...

    def begin(self) -> None:
        """Have the disk begin with them. Does not wait, and nothing follows from it."""
        ...

    def run(self) -> None:
        """Block until they are on the disk."""
        ...


Persisted = Callable[[int], None]
"""Told of a write that is durable, as all before it are. Must not raise."""


@dataclass(slots=True)
class CommitGroup:
    """What is written and synced at once."""

    write: int = 0
    """The newest of its writes; they are durable in their order."""
    write_count: int = 0
    syncs: dict[Hashable, Synced] = field(default_factory=dict)
    """By their subjects. To be run before the records are written."""
    records: list[JournalRecord] = field(default_factory=list)
    persisted: Persisted = lambda write: None


class GroupCommits:
    """The writes of one journal. Invariant: `durable <= newest`, and while nothing is being
    written nothing waits."""

    __slots__ = ("_begun", "_hand_over", "_lock", "_waiting", "durable", "error", "newest")

    def __init__(self, hand_over: Callable[[CommitGroup], None]) -> None:
        """`hand_over` has a group written that waited for the one before it."""
        self._hand_over = hand_over
        self._waiting = CommitGroup()
        self._begun = 0
        """Groups that are being written, or are, and have not been told of."""
        self._lock = Lock()
        """Of both."""
        self.newest = 0
        """The newest write that has come."""
        self.durable = 0
        """The newest write that is durable, as all before it are."""
        self.error: OSError | None = None
        """Why nothing is written any more."""

    def add(
        self,
        write: int,
        records: Sequence[JournalRecord],
        persisted: Persisted,
        syncs: Sequence[Synced],
    ) -> CommitGroup | None:
        """A write has come. What is returned is to be written now, by whomever the caller chooses,
        and `written` is to be called then; `None` if it has to wait."""
        if self.error is not None:
            return None
        assert write > self.newest, "writes come in order"
        self.newest = write
        with self._lock:
            group = self._waiting
            group.write, group.persisted = write, persisted
            group.write_count += 1
            group.records += records
            for sync in syncs:
                group.syncs[sync.subject] = sync
            return None if self._begun else self._begin_waiting()

    @property
    def is_writing(self) -> bool:
        """Whether a group is being written, or is and has not been told of."""
        return self._begun > 0

    def take(self) -> CommitGroup | None:
        """What whoever writes, and has written all that was begun, is to write next without being
        told to; the groups before it are still to be told of, in their order."""
        with self._lock:
            return self._begin_waiting() if self._waiting.syncs else None

    def _begin_waiting(self) -> CommitGroup:
        group, self._waiting = self._waiting, CommitGroup()
        self._begun += 1
        return group

    def written(self, group: CommitGroup) -> None:
        """The group that was to be written is, and is synced."""
        if self.error is not None:
            return
        with self._lock:
            self._begun -= 1
            is_next = not self._begun and self._waiting.write_count
            following = self._begin_waiting() if is_next else None
        if following is not None:
            self._hand_over(following)
        self.durable = group.write
        group.persisted(group.write)

    def fail(self, error: OSError) -> bool:
        """Nothing is known about the disk any more. Whether that is new."""
        if self.error is not None:
            return False
        self.error = error
        with self._lock:
            self._waiting = CommitGroup()
        return True

    def is_behind(self) -> bool:
        """Whether something that has come is not durable yet."""
        return self.newest > self.durable
