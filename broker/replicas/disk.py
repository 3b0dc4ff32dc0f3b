"""The group commit: one writer thread per data directory, and one journal.

What a turn has made durable-to-be is one batch of journal records. Batches are queued; whenever the
thread is free it gets all that is queued, writes it, syncs once, and reports back to the loop; what
came meanwhile is the next group. So a busy disk makes the groups larger and not the queue longer.

A large run of batches is not written twice: its log's files are synced first, and the journal has
only a record that says so.

A write for which there is no room on the disk is tried again until there is: nothing has happened
to what was written before, and whoever waits goes on waiting.

A sync that fails is never tried again: the kernel may have dropped the pages and would report
success (the fsyncgate of 2018). Nothing is known about the disk any more, so nothing that
waited is answered, and the broker stops.
"""

from __future__ import annotations

import errno
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import field
from functools import partial
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Final, Protocol

import trio

from tidemark.broker.network.turn import Turn
from tidemark.partitions.storage.journal.records import JournalRecord
from tidemark.protocol.values import dataclass

STOP_SECONDS_MAX: Final = 30.0
ROOM_RETRY_SECONDS: Final = 0.2
NOTE_SECONDS: Final = 0.002
"""So long is waited for the next group before the journal notes that all is synced."""


class WriteAheadJournal(Protocol):
    """The journal, as far as the thread needs it. Both block, and raise `OSError`."""

    def write(self, records: Sequence[JournalRecord]) -> object: ...
    def sync(self, *, notes: bool) -> None: ...
    def note_synced(self) -> None:
        """Nothing depends on it, and it does not raise."""
        ...


class Synced(Protocol):
    """Files that are to be on the disk before the journal says so. Blocks, and raises `OSError`."""

    def run(self) -> None: ...


Persisted = Callable[[int], None]
"""Told of a batch that is durable, as all before it are. Must not raise."""

Failed = Callable[[OSError], None]


@dataclass(slots=True)
class _Group:
    """What is written and synced at once."""

    batch: int = 0
    """The newest of its batches; they are durable in their order."""
    batches: int = 0
    syncs: list[Synced] = field(default_factory=list)
    records: list[JournalRecord] = field(default_factory=list)
    persisted: Persisted = lambda batch: None

    def add(
        self,
        batch: int,
        records: Sequence[JournalRecord],
        persisted: Persisted,
        syncs: Sequence[Synced],
    ) -> None:
        self.batch, self.persisted = batch, persisted
        self.batches += 1
        self.records += records
        self.syncs += syncs


class DiskWriter:
    """Queues batches of journal records for the writer thread. Used on the loop's thread only.

    `call_in_loop` runs a function as a turn on the loop's thread from any other; `failed` is told
    of the first error, after which nothing is written; `warn` of a full disk, again and again;
    `observe` is told how many seconds each group took, and how many batches it had.
    """

    def __init__(
        self,
        journal: WriteAheadJournal,
        *,
        call_in_loop: Callable[[Callable[[], None]], None],
        failed: Failed,
        warn: Failed = lambda error: None,
        observe: Callable[[float, int], None] = lambda seconds, batches: None,
    ) -> None:
        self._journal = journal
        self._call_in_loop = call_in_loop
        self._failed = failed
        self._warn = warn
        self._observe = observe
        self._queued = _Group()
        self._groups: SimpleQueue[_Group | None] = SimpleQueue()
        self._busy = False
        self._is_stopping = False
        self._idle = trio.Event()
        self._idle.set()
        self._synced = trio.Event()
        self._has_failed = trio.Event()
        self.newest = 0
        """The newest batch that was handed out."""
        self.durable = 0
        """The newest batch that is durable, as all before it are."""
        self.error: OSError | None = None

    def write(
        self,
        batch: int,
        records: Sequence[JournalRecord],
        persisted: Persisted,
        *,
        syncs: Sequence[Synced] = (),
    ) -> None:
        """Have a batch written soon, once what the records rely on is synced. Batches come in
        order.

        `persisted` is told of it, or of a later one that was written with it.
        """
        if self.error is not None:
            return
        assert batch > self.newest, "batches come in order"
        self.newest = batch
        self._queued.add(batch, records, persisted, syncs)
        if not self._busy:
            self._submit()

    def fail(self, error: OSError) -> None:
        """Another sync of this data directory has failed: nothing is written any more."""
        if self.error is None:
            self.error = error
            self._queued = _Group()
            self._idle.set()
            self._synced.set()
            self._has_failed.set()
            self._failed(error)

    async def wait_idle(self) -> None:
        """Until nothing is queued or being synced, or a sync has failed."""
        await self._idle.wait()

    async def wait_failed(self) -> None:
        """Until a sync has failed, which ends the broker."""
        await self._has_failed.wait()

    async def wait_durable(self, batch: int) -> None:
        """Until this batch is durable, or never will be, because a sync has failed."""
        while self.durable < batch and self.error is None:
            await self._synced.wait()

    def _submit(self) -> None:
        if self._idle.is_set():
            self._idle = trio.Event()
        group, self._queued = self._queued, _Group()
        self._busy = True
        self._groups.put(group)

    def _report(self, group: _Group, seconds: float) -> None:
        self._busy = False
        if self.error is not None:
            return
        self.durable = group.batch
        self._observe(seconds, group.batches)
        # The next group first: the disk works while this one is answered.
        if self._queued.batches:
            self._submit()
        else:
            self._idle.set()
        self._synced.set()
        self._synced = trio.Event()
        group.persisted(group.batch)

    def _write_until_stopped(self) -> None:
        """The thread. It knows nothing but the journal, and touches no state of the loop's."""
        group = self._groups.get()
        while group is not None:
            started = time.perf_counter()
            try:
                for sync in group.syncs:
                    sync.run()
                self._write_when_there_is_room(group.records)
                self._journal.sync(notes=False)
            except OSError as error:
                self._call_in_loop(partial(self.fail, error))
                return
            self._call_in_loop(partial(self._report, group, time.perf_counter() - started))
            group = self._next_group()

    def _next_group(self) -> _Group | None:
        """What is to be written next; the journal's note, meanwhile, if there is time.

        Not at once: the loop, which has just been told, would wait for the interpreter, and the
        next block says the same.
        """
        with suppress(Empty):
            return self._groups.get(timeout=NOTE_SECONDS)
        self._journal.note_synced()
        return self._groups.get()

    def _write_when_there_is_room(self, records: Sequence[JournalRecord]) -> None:
        while True:
            try:
                self._journal.write(records)
                return
            except OSError as error:
                if error.errno != errno.ENOSPC or self._is_stopping:
                    raise
                self._call_in_loop(partial(self._warn, error))
                time.sleep(ROOM_RETRY_SECONDS)

    def start(self) -> Thread:
        thread = Thread(target=self._write_until_stopped, name="disk writer", daemon=True)
        thread.start()
        return thread

    def stop(self) -> None:
        self._is_stopping = True
        self._groups.put(None)


@asynccontextmanager
async def open_disk_writer(
    journal: WriteAheadJournal,
    *,
    turn: Turn,
    failed: Failed,
    warn: Failed = lambda error: None,
    observe: Callable[[float, int], None] = lambda seconds, batches: None,
) -> AsyncIterator[DiskWriter]:
    """A disk writer whose thread lives as long as this block, and finishes what is queued."""
    token = trio.lowlevel.current_trio_token()
    writer = DiskWriter(
        journal,
        call_in_loop=lambda callback: token.run_sync_soon(turn.run, callback),
        failed=failed,
        warn=warn,
        observe=observe,
    )
    thread = writer.start()
    try:
        yield writer
    finally:
        with trio.move_on_after(STOP_SECONDS_MAX, shield=True):
            await writer.wait_idle()
            writer.stop()
            await trio.to_thread.run_sync(thread.join, abandon_on_cancel=True)
