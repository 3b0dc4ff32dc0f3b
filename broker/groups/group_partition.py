"""One partition of `__consumer_offsets` at work: its groups, its log, and its clock.

It lasts as long as this broker leads the partition in one epoch. A write is answered by that
leadership's own commit, or with an error when that ends, even if the record comes to be committed
by another leader.

The state machine says what to answer and what to write; this carries it out. Writes are appended in
their order, and reported in their order, however their outcomes come.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Generic, TypeVar

from tidemark.broker.network.requests import Pending
from tidemark.broker.network.timers import Timer, Timers
from tidemark.broker.node import Clock
from tidemark.broker.replicas.replica import Replica
from tidemark.partitions.state_machines.groups.effects import Effects, Write
from tidemark.partitions.state_machines.groups.records import encode_record
from tidemark.partitions.state_machines.groups.requests import (
    Answer,
    CommittingProducer,
    Heartbeat,
    Request,
)
from tidemark.partitions.state_machines.groups.shard import GroupShard
from tidemark.partitions.state_machines.instant import Instant
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.records.records import Record, encode_batch
from tidemark.protocol.types import ProducerId

logger = logging.getLogger(__name__)

AnswerT = TypeVar("AnswerT", bound=Answer)
R = TypeVar("R")

# What a failed append means to a client that asked its coordinator for something.
_APPEND_ERRORS = {
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    # The producer of a transaction is fenced: that is its own matter.
    ErrorCode.INVALID_PRODUCER_EPOCH: ErrorCode.INVALID_PRODUCER_EPOCH,
}


class Asker(Generic[AnswerT, R]):
    """Who asked: turns the machine's answer into the response and completes the request."""

    __slots__ = ("_kind", "_respond", "pending")

    def __init__(self, kind: type[AnswerT], respond: Callable[[AnswerT], R]) -> None:
        self.pending: Pending[R] = Pending()
        self._kind = kind
        self._respond = respond

    def take(self, answer: Answer) -> None:
        assert isinstance(answer, self._kind)
        self.pending.complete(self._respond(answer))


class GroupPartition:
    """The groups of one partition, served. All of it runs on the loop's thread."""

    def __init__(
        self, shard: GroupShard, replica: Replica, *, timers: Timers, clock: Clock
    ) -> None:
        self.shard = shard
        self._replica = replica
        self._epoch = replica.epoch
        self._timers = timers
        self._clock = clock
        self._timer: Timer | None = None
        self._to_append: deque[Write] = deque()
        self._is_appending = False
        self._is_held = False
        # Writes whose outcome was not reported yet, in order; None while it is not known.
        self._outcomes: dict[int, ErrorCode | None] = {}
        self._set_timer()

    @property
    def is_current(self) -> bool:
        """Whether the leadership still lasts in which these groups were read."""
        return self._replica.is_serving and self._replica.epoch == self._epoch

    def ask(self, request: Request, asker: Asker[AnswerT, R]) -> Pending[R]:
        """Have the groups answer, now or later."""
        self._perform(self.shard.step(request, asker, self.now()))
        return asker.pending

    def heartbeat(self, request: Heartbeat) -> ErrorCode:
        return self.shard.heartbeat(request, self.now())

    def expire_offsets(self) -> None:
        self._perform(self.shard.expire_offsets(self.now()))

    def forget_topics(self, topics: frozenset[str]) -> None:
        self._perform(self.shard.forget_topics(topics, self.now()))

    def end_transaction(self, producer_id: ProducerId, *, is_commit: bool) -> None:
        """Its marker is committed, and all that was appended before it."""
        self._perform(self.shard.end_transaction(producer_id, self.now(), is_commit=is_commit))

    def resign(self) -> None:
        """Send everybody away who waits; what is on its way to the log is nobody's any more."""
        self._to_append.clear()
        if self._is_held:
            self._replica.line.leave(self)
            self._is_held = False
        self._perform(self.shard.resign(self.now()))

    def now(self) -> Instant:
        return instant(self._timers, self._clock)

    def _perform(self, effects: Effects) -> None:
        for reply in effects.replies:
            assert isinstance(reply.token, Asker)
            reply.token.take(reply.answer)
        self._to_append += effects.writes
        self._append_all(may_be_held=True)
        self._set_timer()

    def _append_all(self, *, may_be_held: bool) -> None:
        # An append may be committed at once, and what follows from that come back here.
        if self._is_appending or self._is_held:
            return
        self._is_appending = True
        while self._to_append and not (may_be_held and self._replica.is_holding):
            self._append(self._to_append.popleft())
        self._is_appending = False
        if self._to_append:
            # The lead is about to go: as a producer's request, what is to be written waits.
            self._is_held = True
            self._replica.line.join(self, 0)

    def go_on(self, *, may_be_held: bool) -> None:
        """For the replica's line: write what was held, or have it refused."""
        self._is_held = False
        self._append_all(may_be_held=may_be_held)
        self._set_timer()

    def _append(self, write: Write) -> None:
        self._outcomes[write.number] = None
        timestamp_ms = self._clock.now_ms()
        records = [
            Record(timestamp_ms=timestamp_ms, key=key, value=value)
            for key, value in map(encode_record, write.records)
        ]
        try:
            if not self.is_current:
                # The log may have gone on without these groups: what they want to write is wrong.
                raise RequestError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            batch = _encode(records, write.producer)
            end_offset = self._replica.append_own(batch).end_offset
        except RequestError as error:
            self._settle(write.number, error)
        else:
            self._replica.when_committed(end_offset, partial(self._settle, write.number))

    def _settle(self, number: int, error: RequestError | None) -> None:
        """The write's outcome is known; report what can be reported in order."""
        if error is not None:
            logger.warning("%s: a write failed: %s", self._replica.name, error)
        self._outcomes[number] = ErrorCode.NONE if error is None else _as_coordinators(error.code)
        while self._outcomes:
            first = next(iter(self._outcomes))
            outcome = self._outcomes[first]
            if outcome is None:
                return
            del self._outcomes[first]
            if outcome is ErrorCode.NONE:
                self._perform(self.shard.stored(first, self.now()))
            else:
                self._perform(self.shard.not_stored(first, outcome, self.now()))

    def _set_timer(self) -> None:
        deadline_ms = self.shard.next_deadline_ms
        if deadline_ms is None:
            self._cancel_timer()
            return
        # A millisecond late, so that rounding never makes it early.
        deadline_seconds = (deadline_ms + 1) / 1000
        if self._timer is None or deadline_seconds < self._timer.deadline_seconds:
            self._cancel_timer()
            self._timer = self._timers.at(deadline_seconds, self._tick)

    def _cancel_timer(self) -> None:
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()

    def _tick(self) -> None:
        self._timer = None
        self._perform(self.shard.tick(self.now()))


def instant(timers: Timers, clock: Clock) -> Instant:
    return Instant(ticks_ms=int(timers.now() * 1000), wall_ms=clock.now_ms())


def _encode(records: Sequence[Record], producer: CommittingProducer | None) -> bytes:
    if producer is None:
        return encode_batch(records)
    return encode_batch(
        records, producer_id=producer.id, producer_epoch=producer.epoch, is_transactional=True
    )


def _as_coordinators(code: ErrorCode) -> ErrorCode:
    return _APPEND_ERRORS.get(code, ErrorCode.COORDINATOR_NOT_AVAILABLE)
