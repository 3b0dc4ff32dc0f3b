"""What a start would have to do otherwise, done beforehand: checkpoints, beside the commits.

A file of the journal may be used again when all that its records say is elsewhere on the disk:
batches in their segments, votes, epochs and log starts in `state.db`. So a checkpoint is

1. on the loop, in one turn: the journal says up to where it is written (the mark), and of each log
   that changed, what is unsynced is captured, and the partition's state;
2. a wait until the journal is synced as far as that. A state that was in `state.db` before its
   records were in the journal could be undone by a redo of older ones;
3. on a thread: the captures are synced, the states written in one transaction, and the files of the
   journal before the mark are free.

Commits go on meanwhile. A crash between any two steps leaves the records in the journal, and redo
does again what was done already.

A log that has begun a new segment, or has much that is not synced, is saved in the same way, with
no mark: the closed one's index is written with it, and what its retention no longer keeps goes.
That is done a few times a second at most: where a log grows quicker than the disk writes it would
else go on without a pause, and whoever appends would pay for it.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Final, NamedTuple, Protocol

import trio

from tidemark.broker.replicas.disk import DiskWriter
from tidemark.broker.replicas.early_syncs import EarlySyncs
from tidemark.broker.replicas.removals import Removals
from tidemark.broker.threads import in_thread, run_in_thread
from tidemark.partitions.storage.journal.blocks import Lsn
from tidemark.partitions.storage.journal.group_commits import Synced
from tidemark.partitions.storage.journal.journal import Journal
from tidemark.partitions.storage.left_groups import remember
from tidemark.partitions.storage.refusals import may_pass
from tidemark.partitions.storage.retention import Removal
from tidemark.partitions.storage.state_db import PartitionKey, PartitionState, StateDb
from tidemark.partitions.storage.syncing import Capture, NotTaken
from tidemark.protocol.errors import StorageError
from tidemark.protocol.types import Epoch

logger = logging.getLogger(__name__)

CHECKPOINT_SECONDS: Final = 30.0
ROLLED_SECONDS: Final = 0.25
"""What is written in that time a start after a crash may have to check, beside the rest."""
RETRY_SECONDS: Final = 1.0
SETTLE_SECONDS: Final = 0.005


class Captured(NamedTuple):
    """What of a partition is to be saved."""

    capture: Capture
    state: PartitionState
    """Its recovery point is what the capture's sync returns."""


class Savable(Protocol):
    """A replica, as far as this needs one."""

    key: PartitionKey

    @property
    def is_available(self) -> bool: ...
    def capture(self) -> Captured: ...
    def begin_early_sync(self) -> Synced: ...
    def set_flush(self, *, syncs: bool) -> None:
        """Raises `NotTaken`, and nothing has changed: it may be tried again."""
        ...

    def retain(self) -> None:
        """It may have closed a segment: give up what is not to be retained with it."""
        ...


class Checkpoints:
    """Saves what has changed: when the journal asks for it, and now and then. Used on the loop.

    `is_settled` says whether files and groups say the same at this moment: a log that is about to
    be cut, because the journal says so already, is not to be captured. `make_room` is called when
    something could not be written, perhaps because the disk is full; `is_full` says whether it is.
    """

    def __init__(
        self,
        *,
        journal: Journal,
        state: StateDb,
        disk: DiskWriter,
        is_settled: Callable[[], bool],
        make_room: Callable[[], object] = lambda: None,
        is_full: Callable[[], bool] = lambda: False,
    ) -> None:
        self._journal = journal
        self._state = state
        self._disk = disk
        self._is_settled = is_settled
        self._make_room = make_room
        self._early = EarlySyncs(disk)
        self._changed: dict[Savable, None] = {}
        """Of these, something is in the journal that was not saved since."""
        self._rolled: dict[Savable, None] = {}
        self._flushes: dict[Savable, bool] = {}
        self._left: dict[PartitionKey, Epoch] = {}
        """Given up since the last checkpoint, in these epochs: the journal has them too."""
        self._removals = Removals(disk, is_full=is_full)
        self._wanted = trio.Event()
        self._saving = trio.Lock()
        self._rolled_from = 0.0
        """From when on those that have rolled may be saved again."""
        self._has_ended = False

    def note(self, replica: Savable, size_bytes: int = 0) -> None:
        """Something about it was given to the journal, so many bytes."""
        self._changed[replica] = None
        if self._early.note(replica, size_bytes):
            self._wanted.set()

    def save_later(self, replica: Savable) -> None:
        """It has closed a segment, whose index is to be written, or has much that is unsynced."""
        if replica not in self._rolled:
            self._rolled[replica] = None
            self._wanted.set()

    def set_flush_later(self, replica: Savable, *, syncs: bool) -> None:
        """Have a log journaled from now on, or no more, with `state.db` saying so first."""
        self._flushes[replica] = syncs
        self._wanted.set()

    def keep_flush(self, replica: Savable) -> None:
        """What was wanted with `set_flush_later`, and is not done yet, is not wanted any more."""
        if self._flushes.pop(replica, None) is not None:
            self._changed[replica] = None  # perhaps it is recorded already

    def remove_later(self, write: int, removals: Sequence[Removal]) -> None:
        """Remove files, once that write is durable."""
        self._removals.add(write, removals)
        self._wanted.set()

    def forget(self, replica: Savable) -> None:
        """Its files are closed or going away."""
        self._changed.pop(replica, None)
        self._rolled.pop(replica, None)
        self._flushes.pop(replica, None)
        self._early.forget(replica)

    def leave(self, key: PartitionKey, epoch: Epoch) -> None:
        """A replica is given up, and was in that epoch, as the journal may be the only one to say.

        Other than that it is to be forgotten.
        """
        self._left[key] = epoch

    def look(self) -> None:
        """The journal has grown."""
        if self._journal.needs_checkpoint or self._journal.wants_file:
            self._wanted.set()

    async def run(self) -> None:
        """Save what is due, until the end."""
        while not self._has_ended:
            with trio.move_on_after(CHECKPOINT_SECONDS) as waiting:
                await self._wanted.wait()
            self._wanted = trio.Event()
            try:
                # Before anything that needs room: these make some.
                await self._removals.run_durable()
                await self._removals.look_after_kept()
                await self._set_flushes()
                if self._journal.wants_file:
                    await self._prepare_file()
                if waiting.cancelled_caught or self._journal.needs_checkpoint:
                    await self.checkpoint()
                elif self._rolled and trio.current_time() >= self._rolled_from:
                    rolled = list(self._rolled)
                    await self.save(rolled)
                    for replica in rolled:
                        replica.retain()
                    self._rolled_from = trio.current_time() + ROLLED_SECONDS
                await self._removals.run()
                await self._sync_early()
                if self._rolled:
                    await self._rest()
            except StorageError as error:
                # The disk is full, say. The journal grows meanwhile, and a start after a crash has
                # more to redo; nothing is lost.
                logger.warning("what has changed cannot be saved now: %s", error)
                self._make_room()
                await trio.sleep(RETRY_SECONDS)
                self._wanted.set()

    async def _rest(self) -> None:
        """Until those that have rolled may be saved, or something else is wanted."""
        with trio.move_on_at(self._rolled_from):
            await self._wanted.wait()
        self._wanted.set()

    async def _set_flushes(self) -> None:
        for replica, syncs in list(self._flushes.items()):
            # Before the journal takes a log over, all that the log has is synced: it must not go on
            # where the log may end after a loss of power. And before the page cache does, the next
            # start must know that there is something to lose.
            await self._save([replica], has_all=False, flush=syncs)

    async def _prepare_file(self) -> None:
        async with self._saving:
            if not self._has_ended:
                try:
                    with self._disk.others():
                        await in_thread(self._journal.prepare_file)
                except OSError as error:
                    if not may_pass(error):
                        self._disk.fail(error)

    async def _sync_early(self) -> None:
        async with self._saving:
            if not self._has_ended:
                with self._disk.others():
                    await self._early.run()

    async def checkpoint(self) -> None:
        """Save all that the journal has of any partition, so that its files are free again.

        Raises `StorageError` if `state.db` does not take it; it may be tried again.
        """
        await self._save(list(self._changed), has_all=True)

    async def save(self, replicas: Collection[Savable]) -> None:
        """Save these, whether or not the journal needs it. Raises as `checkpoint` does."""
        await self._save(replicas, has_all=False)

    async def wait_saved(self) -> None:
        """Until what has been captured so far is recorded. What is removed from `state.db` after
        that does not come back: who is given up is not captured any more."""
        async with self._saving:
            pass

    @asynccontextmanager
    async def end(self) -> AsyncIterator[Lsn]:
        """Save nothing any more. The block, which has the mark, saves all that is left itself."""
        self._has_ended = True
        self._wanted.set()
        async with self._saving:
            await run_in_thread(remember, self._state, self._left)
            yield self._journal.begin_checkpoint()

    async def _save(
        self, replicas: Collection[Savable], *, has_all: bool, flush: bool | None = None
    ) -> None:
        async with self._saving:
            if self._has_ended:
                return
            # What was captured has to be synced, or a later capture would not say the truth.
            with trio.CancelScope(shield=True):
                if not await self._wait_settled():
                    return
                mark = self._journal.begin_checkpoint() if has_all else None
                left = dict(self._left) if has_all else {}
                captured = [replica.capture() for replica in replicas if replica.is_available]
                if flush is not None:
                    captured = [_with_flush(each, flush) for each in captured]
                for replica in replicas:
                    self._rolled.pop(replica, None)
                    if has_all:
                        self._changed.pop(replica, None)
                await self._disk.wait_durable(self._disk.newest)
                if self._disk.error is None:
                    await self._write(replicas, captured, left, mark)
                if flush is not None and self._disk.error is None:
                    self._change_flush(replicas, flush)

    def _change_flush(self, replicas: Collection[Savable], syncs: bool) -> None:
        for replica in replicas:
            if self._flushes.get(replica) is syncs:
                try:
                    replica.set_flush(syncs=syncs)
                except NotTaken as error:
                    raise StorageError(str(error)) from error  # the wish is left, for later
                del self._flushes[replica]

    async def _wait_settled(self) -> bool:
        """Whether something is to be saved then.

        Rare, and over as soon as the journal is synced; but a broker that ends may not write any
        more what is waited for, and saves all that is left itself.
        """
        while not (self._is_settled() or self._has_ended or self._disk.error):  # noqa: ASYNC110
            await trio.sleep(SETTLE_SECONDS)
        return not self._has_ended

    async def _write(
        self,
        replicas: Collection[Savable],
        captured: Sequence[Captured],
        left: Mapping[PartitionKey, Epoch],
        mark: Lsn | None,
    ) -> None:
        try:
            with self._disk.others():
                await in_thread(self._sync_and_record, captured, left, mark)
        except NotTaken as error:
            self._changed.update(dict.fromkeys(replicas))
            raise StorageError(str(error)) from error
        except OSError as error:
            self._disk.fail(error)
        except StorageError:
            self._changed.update(dict.fromkeys(replicas))
            raise
        else:
            for key, epoch in left.items():
                if self._left.get(key) == epoch:
                    del self._left[key]

    def _sync_and_record(
        self, captured: Sequence[Captured], left: Mapping[PartitionKey, Epoch], mark: Lsn | None
    ) -> None:
        """On a thread."""
        states, not_taken = [], None
        for each in captured:
            # All of them, whatever becomes of one: they count as synced for those that follow.
            try:
                states.append(replace(each.state, recovery_point=each.capture.sync()))
            except NotTaken as error:
                not_taken = error
        if not_taken is not None:
            raise not_taken
        with self._state.transaction():
            remember(self._state, left)
            self._state.save(states, journal_start=mark)
        self._state.copy_long_log()
        if mark is not None:
            self._journal.checkpointed(mark)


def _with_flush(captured: Captured, syncs: bool) -> Captured:
    # Journaled only once it is: till then a loss of power may cost it its end.
    return captured._replace(
        state=replace(captured.state, is_journaled=captured.state.is_journaled and syncs)
    )
