"""Who waits until what was appended to a partition counts: committed, and held by enough."""

from __future__ import annotations

from abc import ABC, abstractmethod

import trio

from tidemark.broker.replicas.checkpoints import Captured
from tidemark.broker.replicas.replica_state import ReplicaState
from tidemark.broker.replicas.waiters import Committed
from tidemark.partitions.replication.outbox import GroupChange
from tidemark.partitions.storage.syncing import TailSync
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.types import NO_OFFSET, Offset


class CommittingReplica(ReplicaState, ABC):
    """The part of `Replica` that producers and coordinators wait at."""

    __slots__ = ()

    @abstractmethod
    def changed(self, change: GroupChange) -> None:
        """For the driver: what became of the group in the turn that ends."""

    @abstractmethod
    def set_flush(self, *, syncs: bool) -> None:
        """For checkpoints, which have written down what has to be known before. Raises `NotTaken`,
        and nothing has changed: it may be tried again."""

    @abstractmethod
    def retain(self) -> None:
        """For checkpoints, which have saved it: it may have closed a segment, so give up what is
        not to be retained with it."""

    def capture(self) -> Captured:
        """For a checkpoint: what is to be saved now. Its sync must follow."""
        member = self.member
        return Captured(member.log.begin_sync(), member.state_row(NO_OFFSET))

    def begin_early_sync(self) -> TailSync:
        """For a sync between checkpoints, of which nothing is recorded."""
        return self.log.begin_early_sync()

    # Committing

    def check_in_sync(self) -> None:
        """Raises `RequestError` NOT_ENOUGH_REPLICAS if too few voters can be heard from."""
        why = self._why_not_in_sync()
        if why is not None:
            # Who has lost its majority leads no more: its clients are to look for who does.
            self.check_serving()
            raise RequestError(ErrorCode.NOT_ENOUGH_REPLICAS, why)

    @property
    def is_in_sync(self) -> bool:
        """Whether `check_in_sync` raises nothing."""
        return self.config.min_insync_replicas == 1 or self._why_not_in_sync() is None

    def _why_not_in_sync(self) -> str | None:
        wanted = self._wanted
        if wanted == 1:
            return None
        alive = self._services.driver.alive(self.member.group.config.voters)
        if alive >= wanted:
            return None
        return (
            f"{self.name} has {alive} replicas that can be heard from; min.insync.replicas is "
            f"{wanted}"
        )

    def is_acknowledged(self, end_offset: Offset) -> bool:
        """Whether what was appended up to there has all the replicas that a producer wants."""
        member = self._member
        return (
            member is not None
            and end_offset <= member.high_watermark
            and (
                self.config.min_insync_replicas == 1
                or not self._wants_more
                or end_offset <= self._held_end()
            )
        )

    def when_acknowledged(self, end_offset: Offset, done: Committed) -> None:
        """Have `done` called once all below `end_offset` is committed, or never will be.

        Where `min.insync.replicas` is more than a majority, so many have to hold it besides.
        """
        if not self._wants_more:
            self.when_committed(end_offset, done)
        elif not self.is_leader:
            done(self.why_not_serving())
        elif self.is_acknowledged(end_offset):
            done(None)
        else:
            self.member.is_awaited = self._has_held_waiters
            self._held_waiters = self._held_waiters.joined(end_offset, done)
            self._services.driver.watch_held(self)

    def when_committed(self, end_offset: Offset, done: Committed) -> None:
        """Have `done` called once all below `end_offset` is committed, or never will be."""
        if not self.is_leader:
            done(self.why_not_serving())
        elif end_offset <= self.high_watermark:
            done(None)
        else:
            self._commit_waiters = self._commit_waiters.joined(end_offset, done)

    async def wait_committed(self, end_offset: Offset) -> None:
        """Until all below `end_offset` is committed. Raises `RequestError` if it never will be."""
        done, errors = trio.Event(), list[RequestError]()

        def committed(error: RequestError | None) -> None:
            if error is not None:
                errors.append(error)
            done.set()

        self.when_committed(end_offset, committed)
        await done.wait()
        if errors:
            raise errors[0]

    @property
    def _wanted(self) -> int:
        """How many voters have to hold a record: all, where more are asked for (KIP-966)."""
        wanted = self.config.min_insync_replicas
        # Whoever looks at the group first tells it what was appended: most want one, and need not.
        return wanted if wanted == 1 else min(wanted, len(self.member.group.config.voters))

    @property
    def _wants_more(self) -> bool:
        """Whether `min.insync.replicas` is more than a majority."""
        wanted = self._wanted
        return wanted != 1 and wanted > len(self.member.group.config.voters) // 2 + 1

    def _held_end(self) -> Offset:
        return self.member.group.held_by(self._wanted).offset

    def look_at_held(self) -> None:
        """For the driver: perhaps more voters hold what a producer waits for, or never will."""
        if self._held_waiters and self.is_leader:
            self._held_waiters.advance(min(self.high_watermark, self._held_end()))
            why = self._why_not_in_sync()
            if why is not None:
                # Committed, so it stays. A producer that repeats it is answered once more hold it.
                error = RequestError(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, why)
                self._held_waiters.fail_below(self.high_watermark, error)
        if not self._held_waiters:
            self._services.driver.stop_watching(self)
