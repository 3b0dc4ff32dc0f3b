"""The one thread of a data directory: it writes to the journal what it is handed, and syncs it.

It knows nothing but the journal, and touches no state of the loop's; what is to be known there is
called there. What is written together, and who hears of it, is decided elsewhere (`GroupCommits`).

A write for which there is no room on the disk, or no descriptor, is tried again until there is, and
so is a sync that could not be begun: nothing has happened to what was written before, and whoever
waits goes on waiting. Any other failure is the thread's end, and reported as the disk's.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Final, Protocol

from tidemark.partitions.storage.journal.group_commits import CommitGroup
from tidemark.partitions.storage.journal.records import JournalRecord
from tidemark.partitions.storage.refusals import NO_ROOM, was_not_asked, was_not_written
from tidemark.protocol.errors import StorageError

ROOM_RETRY_SECONDS: Final = 0.2
NOTE_SECONDS: Final = 0.002
"""So long is waited for the next group before the journal notes that all is synced, and says what
was put off."""

Failed = Callable[[OSError], None]


class WriteAheadJournal(Protocol):
    """The journal, as far as it is needed here. `write` and `sync` block, and raise `OSError`."""

    def put_off(self, records: Sequence[JournalRecord]) -> bool:
        """Whether these are left to the next `write`."""
        ...

    def write(self, records: Sequence[JournalRecord], *, synced: bool) -> object: ...
    def sync(self, *, notes: bool) -> None: ...
    def note_synced(self) -> None:
        """Nothing depends on it, and it does not raise."""
        ...


class WriterThread:
    """Groups are reported in the order of their coming: with `written` and how many seconds each
    took, or with `failed` and nothing after it.

    `call_in_loop` runs a function as a turn on the loop's thread; `written`, `failed` and `warn`,
    which is told again and again of what is tried again, are called so. `take` is asked for what to
    write next when all that came is written, and `make_room` when the disk is full, whether it has
    made some; both on the thread.
    """

    def __init__(
        self,
        journal: WriteAheadJournal,
        *,
        call_in_loop: Callable[[Callable[[], None]], None],
        written: Callable[[CommitGroup, float], None],
        failed: Failed,
        warn: Failed,
        take: Callable[[], CommitGroup | None],
        make_room: Callable[[], bool],
    ) -> None:
        self._journal = journal
        self._call_in_loop = call_in_loop
        self._written = written
        self._failed = failed
        self._warn = warn
        self._take = take
        self._make_room = make_room
        self._is_stopping = False
        self._groups: SimpleQueue[CommitGroup | None] = SimpleQueue()
        self.using_journal = Lock()
        """To be held by whoever writes to the journal: the thread does, or the loop."""

    def write(self, group: CommitGroup) -> None:
        """Have it written and synced, behind those that came before. From any thread."""
        self._groups.put(group)

    def start(self) -> Thread:
        thread = Thread(target=self._run, name="disk writer", daemon=True)
        thread.start()
        return thread

    def stop(self) -> None:
        """Write what has come, and end. What would have to be tried again is not, from now on."""
        self._is_stopping = True
        self._groups.put(None)

    def _run(self) -> None:
        try:
            self._write_until_stopped()
        except BaseException as error:
            # A mistake of ours, and nobody else would hear of it: the broker would go on, and lead,
            # with nothing durable any more.
            broken = OSError(f"the disk writer has broken: {error!r}")
            self._call_in_loop(partial(self._failed, broken))
            raise

    def _write_until_stopped(self) -> None:
        group = self._groups.get()
        while group is not None:
            started = time.perf_counter()
            try:
                self._write_group(group)
                seconds = time.perf_counter() - started
                # Before the loop hears: what it hands over then is older than what comes after it.
                following = None if self._is_stopping else self._take()
                self._call_in_loop(partial(self._written, group, seconds))
                group = following or self._next_group()
            except OSError as error:
                self._call_in_loop(partial(self._failed, error))
                return

    def _write_group(self, group: CommitGroup) -> None:
        self._sync_files(group)
        with self.using_journal:
            if not self._journal.put_off(group.records):
                self._write_records(group.records)

    def _write_records(self, records: Sequence[JournalRecord]) -> None:
        write = partial(self._journal.write, records, synced=True)
        self._insist(write, was_not_written)
        self._insist(partial(self._journal.sync, notes=False), was_not_asked)

    def _sync_files(self, group: CommitGroup) -> None:
        if len(group.syncs) > 1:
            # The disk takes them all while the first is waited for.
            for sync in group.syncs.values():
                self._insist(sync.begin, was_not_asked)
        for sync in group.syncs.values():
            self._insist(sync.run, was_not_asked)

    def _next_group(self) -> CommitGroup | None:
        """What is to be written next; what was put off and the journal's note, meanwhile, if there
        is time.

        Not at once: the loop, which has just been told, would wait for the interpreter, and the
        next block says the same.
        """
        with suppress(Empty):
            return self._groups.get(timeout=NOTE_SECONDS)
        with self.using_journal:
            self._catch_up()
        return self._groups.get()

    def _catch_up(self) -> None:
        """Have the journal say all that it has not yet said. Nothing depends on it: what cannot be
        written now comes with the next group."""
        try:
            self._journal.write((), synced=True)
        except OSError as error:
            if not was_not_written(error):
                raise
            return
        except StorageError:
            return  # The loop has met a failure, and has told of it: nothing is written any more.
        self._insist(partial(self._journal.sync, notes=False), was_not_asked)
        self._journal.note_synced()

    def _insist(
        self, step: Callable[[], object], may_be_repeated: Callable[[OSError], bool]
    ) -> None:
        while True:
            try:
                step()
                return
            except OSError as error:
                if not may_be_repeated(error):
                    raise
                if error.errno in NO_ROOM and self._make_room():
                    continue
                if self._is_stopping:
                    raise
                self._call_in_loop(partial(self._warn, error))
                time.sleep(ROOM_RETRY_SECONDS)
