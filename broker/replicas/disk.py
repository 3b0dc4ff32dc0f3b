"""The group commit: one writer thread per data directory, and one journal.

What a turn has made durable-to-be is one batch of journal records. Batches are queued; whenever the
thread is free it gets all that is queued, writes it, syncs once, and reports back to the loop; what
came meanwhile is the next group. So a busy disk makes the groups larger and not the queue longer.
A little that comes alone, on a quick disk, the loop writes and syncs itself (`quick_syncs`), unless
other brokers were told of it: they may be a majority without this one's disk, and a loop that syncs
would not hear them.

A large run of batches is not written twice: its log's files are synced first, and the journal has
only a record that says so.

A write for which there is no room on the disk, or no descriptor, is tried again until there is,
and so is a sync that could not be begun: nothing has happened to what was written before, and
whoever waits goes on waiting.

A sync that fails is never tried again: the kernel may have dropped the pages and would report
success (the fsyncgate of 2018). Nothing is known about the disk any more, so nothing that
waited is answered, and the broker stops.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Hashable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import field
from functools import partial
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Final, Protocol

import trio

from tidemark.broker.network.turn import Turn
from tidemark.broker.replicas.quick_syncs import QuickSyncs
from tidemark.partitions.storage.journal.records import JournalRecord
from tidemark.partitions.storage.refusals import NO_ROOM, may_pass, was_not_asked
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

    @property
    def subject(self) -> Hashable:
        """Whose files these are: what is made later for the same covers all of this."""
        ...

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
    syncs: dict[Hashable, Synced] = field(default_factory=dict)
    """By their subjects: each is synced once, by then with all that the group has of it."""
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
        for sync in syncs:
            self.syncs[sync.subject] = sync


class DiskWriter:
    """Queues batches of journal records for the writer thread. Used on the loop's thread only.

    `call_in_loop` runs a function as a turn on the loop's thread from any other; `failed` is told
    of the first error, after which nothing is written; `make_room` is called from any thread when
    the disk is full, and says whether it has made some; `warn` is told if not, again and again;
    `observe` is told how many seconds each group took, and how many batches it had; `when_done`
    runs a function once the turn has said all that it has to say.
    """

    def __init__(
        self,
        journal: WriteAheadJournal,
        *,
        call_in_loop: Callable[[Callable[[], None]], None],
        failed: Failed,
        warn: Failed = lambda error: None,
        make_room: Callable[[], bool] = lambda: False,
        observe: Callable[[float, int], None] = lambda seconds, batches: None,
        when_done: Callable[[Callable[[], None]], None] = lambda callback: callback(),
    ) -> None:
        self._journal = journal
        self._call_in_loop = call_in_loop
        self._when_done = when_done
        self._failed = failed
        self._warn = warn
        self._make_room = make_room
        self._observe = observe
        self._queued = _Group()
        self._groups: SimpleQueue[_Group | None] = SimpleQueue()
        self._using_journal = Lock()
        """The thread does, or the loop."""
        self._pace = QuickSyncs()
        self._others = 0
        """How many sync other files in the same directory now."""
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
        is_told: bool = False,
    ) -> None:
        """Have a batch written soon, once what the records rely on is synced. Batches come in
        order. To be called in a turn.

        `persisted` is told of it, or of a later one that was written with it; perhaps before this
        returns, but not if others were told something in the same turn (`is_told`).
        """
        if self.error is not None:
            return
        assert batch > self.newest, "batches come in order"
        self.newest = batch
        self._queued.add(batch, records, persisted, syncs)
        if not self._busy and (is_told or not self._sync_here()):
            self._submit()

    @contextmanager
    def others(self) -> Iterator[None]:
        """Something else in the directory is synced in this block: the disk is not to be relied on
        to be quick."""
        self._others += 1
        try:
            yield
        finally:
            self._others -= 1

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

    def _sync_here(self) -> bool:
        """Write and sync what is queued on the loop, if that is worth it; else it is left."""
        group, started = self._queued, time.perf_counter()
        size_bytes = sum(len(record.payload) for record in group.records)
        if self._others or group.syncs or not self._pace.may_sync(started, size_bytes):
            return False
        if not self._using_journal.acquire(blocking=False):
            return False  # the thread notes something in it
        try:
            if not self._has_room_for(group.records):
                return False  # the thread can wait for it
            self._journal.sync(notes=False)
        except OSError as error:
            if was_not_asked(error):
                group.records.clear()  # the thread syncs them, and does not write them again
                return False
            self.fail(error)
            return True
        finally:
            self._using_journal.release()
        self._queued = _Group()
        ended = time.perf_counter()
        self._pace.took(ended, ended - started, on_loop=True)
        self._when_done(self._note_here)
        self._tell(group, ended - started)
        return True

    def _has_room_for(self, records: Sequence[JournalRecord]) -> bool:
        """Write these, unless the disk is full, say: then nothing was written."""
        try:
            self._journal.write(records)
        except OSError as error:
            if not may_pass(error):
                raise
            return False
        return True

    def _note_here(self) -> None:
        if not self._busy and self.error is None and self._using_journal.acquire(blocking=False):
            try:
                self._journal.note_synced()
            finally:
                self._using_journal.release()

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
        self._pace.took(time.perf_counter(), seconds, on_loop=False)
        # The next group first: the disk works while this one is answered.
        if self._queued.batches:
            self._submit()
        else:
            self._idle.set()
        self._tell(group, seconds)

    def _tell(self, group: _Group, seconds: float) -> None:
        self.durable = group.batch
        self._observe(seconds, group.batches)
        self._synced.set()
        self._synced = trio.Event()
        group.persisted(group.batch)

    def _write_until_stopped(self) -> None:
        """The thread. It knows nothing but the journal, and touches no state of the loop's."""
        group = self._groups.get()
        while group is not None:
            started = time.perf_counter()
            try:
                for sync in group.syncs.values():
                    self._insist(sync.run, was_not_asked)
                with self._using_journal:
                    self._insist(partial(self._journal.write, group.records), may_pass)
                    self._insist(partial(self._journal.sync, notes=False), was_not_asked)
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
        with self._using_journal:
            self._journal.note_synced()
        return self._groups.get()

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
    make_room: Callable[[], bool] = lambda: False,
    observe: Callable[[float, int], None] = lambda seconds, batches: None,
) -> AsyncIterator[DiskWriter]:
    """A disk writer whose thread lives as long as this block, and finishes what is queued."""
    token = trio.lowlevel.current_trio_token()
    writer = DiskWriter(
        journal,
        call_in_loop=lambda callback: token.run_sync_soon(turn.run, callback),
        failed=failed,
        warn=warn,
        make_room=make_room,
        observe=observe,
        when_done=turn.last,
    )
    thread = writer.start()
    try:
        yield writer
    finally:
        with trio.move_on_after(STOP_SECONDS_MAX, shield=True):
            await writer.wait_idle()
            writer.stop()
            await trio.to_thread.run_sync(thread.join, abandon_on_cancel=True)
