"""A broker's writer thread: the journal, written and synced for all that waits at once."""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from typing import Final, Protocol, TypeVarTuple, Unpack

from tidemark.partitions.replication.outbox import Output
from tidemark.partitions.storage.journal.journal import Journal
from tidemark.partitions.storage.journal.records import JournalRecord

_RETRY_SECONDS: Final = 0.2
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

    def persisted(self, batch: int) -> None:
        """Everything up to that batch is: a turn of its own."""

    def disk_failed(self, error: OSError) -> None:
        """Nothing is known about the disk any more."""

    def moment(self, name: str) -> None:
        """Something worth disturbing has begun."""


class Writer:
    """One process's writer. What waits while it syncs is written together: the group commit."""

    def __init__(self, owner: WriterOwner, journal: Journal) -> None:
        self._owner = owner
        self._journal = journal
        self._waiting: list[Output] = []
        self._is_busy = False
        self.synced_batch = 0

    @property
    def is_idle(self) -> bool:
        return not self._is_busy

    def put(self, output: Output) -> None:
        self._waiting.append(output)
        if not self._is_busy:
            self._begin()

    def _begin(self) -> None:
        self._is_busy = True
        outputs, self._waiting = self._waiting, []
        self._owner.later(self._owner.disk_seconds("write"), self._write, outputs)

    def _write(self, outputs: list[Output]) -> None:
        records = [record for output in outputs for record in output.records]
        # Before: of a write that fails, a part may be there.
        self._owner.written(records)
        try:
            for output in outputs:
                for sync in output.syncs:
                    sync.run()
        except OSError as error:
            self._owner.disk_failed(error)
            return
        try:
            self._journal.write(records)
        except OSError as error:
            if error.errno == errno.ENOSPC:
                self._owner.later(_RETRY_SECONDS, self._write, outputs)
            else:
                self._owner.disk_failed(error)
            return
        self._owner.later(self._owner.disk_seconds("sync"), self._sync, outputs)
        self._owner.moment("sync")

    def _sync(self, outputs: list[Output]) -> None:
        try:
            self._journal.sync()
        except OSError as error:
            self._owner.disk_failed(error)
            return
        for output in outputs:
            self._owner.durable(output)
        self.synced_batch = outputs[-1].batch
        self._is_busy = False
        if self._waiting:
            self._begin()
        self._owner.persisted(self.synced_batch)
