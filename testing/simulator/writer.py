"""A broker's writer thread: the journal, written and synced for all that waits at once."""

from __future__ import annotations

import errno
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Protocol, TypeVarTuple, Unpack

from tidemark.partitions.replication.outbox import Output
from tidemark.partitions.storage.journal.group_commits import CommitGroup, GroupCommits
from tidemark.partitions.storage.journal.journal import Journal
from tidemark.partitions.storage.journal.records import JournalRecord

_RETRY_SECONDS: Final = 0.2
_NOTE_SECONDS: Final = 0.002
_Args = TypeVarTuple("_Args")


class WriterOwner(Protocol):
    """The broker whose thread it is."""

    def later(self, seconds: float, action: Callable[[Unpack[_Args]], None], *args: *_Args) -> None:
        """Do that in so many seconds, if the process lives then."""

    def disk_seconds(self, kind: str) -> float:
        """How long a `write` or a `sync` takes now."""

    def written(self, records: Sequence[JournalRecord]) -> None:
        """These are in the page cache."""

    def durable(self, output: Output) -> None:
        """This is on the disk."""

    def persisted(self, write: int) -> None:
        """Everything up to that write is: a turn of its own."""

    def disk_failed(self, error: OSError) -> None:
        """Nothing is known about the disk any more."""

    def moment(self, name: str) -> None:
        """Something worth disturbing has begun."""


class Writer:
    """One process's writer. What is written together, and who hears of it when, is the real thing's
    to say (`GroupCommits`); how long the disk takes is played."""

    def __init__(self, owner: WriterOwner, journal: Journal) -> None:
        self._owner = owner
        self._journal = journal
        self._commits = GroupCommits(self._begin)
        self._untold: deque[CommitGroup] = deque()
        """On the disk, as the thread knows; the loop has other things to do."""
        self._outputs: deque[Output] = deque()
        """Whose writes are not durable yet."""

    @property
    def synced_write(self) -> int:
        return self._commits.durable

    def put(self, output: Output) -> None:
        self._outputs.append(output)
        group = self._commits.add(output.write, output.records, self._owner.persisted, output.syncs)
        if group is not None:
            self._begin(group)

    def _begin(self, group: CommitGroup) -> None:
        self._owner.later(self._owner.disk_seconds("write"), self._write, group)

    def _write(self, group: CommitGroup) -> None:
        # Before: of a write that fails, a part may be there.
        self._owner.written(group.records)
        try:
            for sync in group.syncs.values():
                sync.run()
        except OSError as error:
            self._fail(error)
            return
        then = self._sync
        if self._journal.put_off(group.records):
            then = self._done
        else:
            try:
                self._journal.write(group.records)
            except OSError as error:
                if error.errno == errno.ENOSPC:
                    self._owner.later(_RETRY_SECONDS, self._write, group)
                else:
                    self._fail(error)
                return
        self._owner.later(self._owner.disk_seconds("sync"), then, group)
        self._owner.moment("sync")

    def _sync(self, group: CommitGroup) -> None:
        try:
            self._journal.sync()
        except OSError as error:
            self._fail(error)
            return
        self._done(group)

    def _done(self, group: CommitGroup) -> None:
        while self._outputs and self._outputs[0].write <= group.write:
            self._owner.durable(self._outputs.popleft())
        self._untold.append(group)
        following = self._commits.take()
        if following is None:
            while self._untold:
                self._tell()
            self._owner.later(_NOTE_SECONDS, self._catch_up)
        else:
            self._begin(following)
            self._owner.later(self._owner.disk_seconds("write"), self._tell)

    def _catch_up(self) -> None:
        """What was put off is written once nothing has come for a moment."""
        if self._commits.is_writing or self._commits.error is not None:
            return
        try:
            self._journal.write(())
            self._journal.sync()
        except OSError as error:
            if error.errno != errno.ENOSPC:
                self._fail(error)

    def _tell(self) -> None:
        if self._untold:
            self._commits.written(self._untold.popleft())

    def _fail(self, error: OSError) -> None:
        self._commits.fail(error)
        self._owner.disk_failed(error)
