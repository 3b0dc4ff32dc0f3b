"""The disk, as the loop sees it: writes of journal records go in, and are durable some time later.

What is written together is decided by `GroupCommits`; here is who writes it. The data directory's
one thread does (`writer_thread.py`). A little that comes alone, on a quick disk, the loop writes
and syncs itself (`quick_syncs`), unless other brokers were told of it: they may be a majority
without this one's disk, and a loop that syncs would not hear them.

A large run of batches is not written twice: its log's files are synced first, and the journal has
only a record that says so.

A sync that fails is never tried again: the kernel may have dropped the pages and would report
success (the fsyncgate of 2018). Nothing is known about the disk any more, so nothing that
waited is answered, and the broker stops.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Final

import trio

from tidemark.broker.network.turn import Turn
from tidemark.broker.replicas.quick_syncs import QuickSyncs
from tidemark.broker.replicas.writer_thread import Failed, WriteAheadJournal, WriterThread
from tidemark.partitions.storage.journal.group_commits import (
    CommitGroup,
    GroupCommits,
    Persisted,
    Synced,
)
from tidemark.partitions.storage.journal.records import JournalRecord
from tidemark.partitions.storage.refusals import was_not_asked, was_not_written

STOP_SECONDS_MAX: Final = 30.0


class DiskWriter:
    """Has journal records written, by the thread or at once. Used on the loop's thread only.

    `call_in_loop` runs a function as a turn on the loop's thread from any other; `failed` is told
    of the first error, after which nothing is written; `make_room` is called from any thread when
    the disk is full, and says whether it has made some; `warn` is told if not, again and again;
    `observe` is told how many seconds each group took, and how many writes it had; `when_done`
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
        observe: Callable[[float, int], None] = lambda seconds, writes: None,
        when_done: Callable[[Callable[[], None]], None] = lambda callback: callback(),
    ) -> None:
        self._journal = journal
        self._call_in_loop = call_in_loop
        self._when_done = when_done
        self._failed = failed
        self._observe = observe
        self.commits = GroupCommits(self._hand_over)
        self.thread = WriterThread(
            journal,
            call_in_loop=call_in_loop,
            written=self._written_by_thread,
            failed=self.fail,
            warn=warn,
            take=self.commits.take,
            make_room=make_room,
        )
        self._using_journal = self.thread.using_journal
        self._pace = QuickSyncs()
        self.is_alone: Callable[[], bool] = lambda: False
        """Whether the loop serves one client, and nobody beside it."""
        self._others = 0
        """How many sync other files in the same directory now."""
        self._told: trio.Event | None = None
        """Set, and taken away, when a group is durable, or none will be. Made by whoever waits."""
        self._has_failed = trio.Event()

    @property
    def newest(self) -> int:
        """The newest write that was handed out."""
        return self.commits.newest

    @property
    def durable(self) -> int:
        """The newest write that is durable, as all before it are."""
        return self.commits.durable

    @property
    def error(self) -> OSError | None:
        """Why nothing is written any more."""
        return self.commits.error

    def write(
        self,
        write: int,
        records: Sequence[JournalRecord],
        persisted: Persisted,
        *,
        syncs: Sequence[Synced] = (),
        is_told: bool = False,
    ) -> None:
        """Have records written soon, once what they rely on is synced. Writes come in order.
        To be called in a turn.

        `persisted` is told of this write, or of a later one that was done with it; perhaps before
        this returns, but not if others were told something in the same turn (`is_told`).
        """
        group = self.commits.add(write, records, persisted, syncs)
        if group is None:
            return
        try:
            is_written = not is_told and self._write_here(group)
        except Exception as error:
            self._end_by_mistake(error)
            raise
        if not is_written:
            self.thread.write(group)

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
        if self.commits.fail(error):
            self._tell_waiting()
            self._has_failed.set()
            self._failed(error)

    def fail_soon(self, error: OSError) -> None:
        """The same, from any thread."""
        self._call_in_loop(partial(self.fail, error))

    # Waiting

    async def wait_idle(self) -> None:
        """Until nothing is queued or being synced, or a sync has failed. For when nothing comes any
        more: a disk that takes all that comes may never be idle."""
        while self.commits.is_writing and self.commits.error is None:
            await self._wait_told()

    async def wait_failed(self) -> None:
        """Until a sync has failed, which ends the broker."""
        await self._has_failed.wait()

    async def wait_durable(self, write: int) -> None:
        """Until this write is durable, or never will be, because a sync has failed."""
        while self.commits.durable < write and self.commits.error is None:
            await self._wait_told()

    async def _wait_told(self) -> None:
        if self._told is None:
            self._told = trio.Event()
        await self._told.wait()

    def _tell_waiting(self) -> None:
        if self._told is not None:
            self._told.set()
            self._told = None

    # On the loop

    def _write_here(self, group: CommitGroup) -> bool:
        """Write and sync a group on the loop, if that is worth it; else it is for the thread."""
        started = time.perf_counter()
        size_bytes = sum(len(record.payload) for record in group.records)
        if self._others or group.syncs:
            return False
        if not self._pace.may_sync(started, size_bytes, is_alone=self.is_alone()):
            return False
        if not self._using_journal.acquire(blocking=False):
            return False  # the thread notes something in it
        try:
            if not self._write_if_there_is_room(group.records):
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
        ended = time.perf_counter()
        self._pace.took(ended, ended - started, on_loop=True)
        self._written(group, ended - started)
        self._when_done(self._note_here)
        return True

    def _write_if_there_is_room(self, records: Sequence[JournalRecord]) -> bool:
        """Whether these were written; if not, the disk is full, say, and nothing was."""
        try:
            self._journal.write(records, synced=True)
        except OSError as error:
            if not was_not_written(error):
                raise
            return False
        return True

    def _note_here(self) -> None:
        is_at_rest = not self.commits.is_writing and self.commits.error is None
        if is_at_rest and self._using_journal.acquire(blocking=False):
            try:
                self._journal.note_synced()
            finally:
                self._using_journal.release()

    # What has become of a group

    def _hand_over(self, group: CommitGroup) -> None:
        self.thread.write(group)

    def _written_by_thread(self, group: CommitGroup, seconds: float) -> None:
        self._pace.took(time.perf_counter(), seconds, on_loop=False)
        try:
            self._written(group, seconds)
        except Exception as error:
            self._end_by_mistake(error)
            raise

    def _end_by_mistake(self, error: Exception) -> None:
        """Of ours: whoever has begun this turn may take it for its own, and go on, while nothing
        would be durable any more."""
        self.fail(OSError(f"what is durable could not be told: {error!r}"))

    def _written(self, group: CommitGroup, seconds: float) -> None:
        if self.commits.error is None:
            self.commits.written(group)
            self._observe(seconds, group.write_count)
            self._tell_waiting()


@asynccontextmanager
async def open_disk_writer(
    journal: WriteAheadJournal,
    *,
    turn: Turn,
    failed: Failed,
    warn: Failed = lambda error: None,
    make_room: Callable[[], bool] = lambda: False,
    observe: Callable[[float, int], None] = lambda seconds, writes: None,
) -> AsyncIterator[DiskWriter]:
    """A disk writer whose thread lives as long as this block, and finishes what is queued."""
    token = trio.lowlevel.current_trio_token()

    def call_in_loop(callback: Callable[[], None]) -> None:
        if not turn.tell(callback):
            token.run_sync_soon(turn.hear, idempotent=True)

    writer = DiskWriter(
        journal,
        call_in_loop=call_in_loop,
        failed=failed,
        warn=warn,
        make_room=make_room,
        observe=observe,
        when_done=turn.last,
    )
    thread = writer.thread.start()
    try:
        yield writer
    finally:
        with trio.move_on_after(STOP_SECONDS_MAX, shield=True):
            await writer.wait_idle()
            writer.thread.stop()
            await trio.to_thread.run_sync(thread.join, abandon_on_cancel=True)
