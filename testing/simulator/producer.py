"""An idempotent producer: numbers its batches, sends them again until they are answered.

A timeout tells it nothing, so a batch that it gives up may be in the log or may come into it: then
its outcome is unknown, and the producer goes on under a new producer epoch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Final

from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.records.records import Record, encode_batch
from tidemark.protocol.types import Offset, ProducerId, TopicPartition
from tidemark.testing.checkers.history import History, Outcome, Send
from tidemark.testing.checkers.violation import Violation
from tidemark.testing.simulator.clock import START_MS
from tidemark.testing.simulator.rpc import Answer, GiveUp, Produce, Produced
from tidemark.testing.simulator.sessions import Session

_BACKOFF_SECONDS: Final = 0.1
_NOT_APPENDED: Final = frozenset(
    {
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)
"""Said only by a broker that has not appended the batch."""


@dataclass(slots=True)
class _Batch:
    values: tuple[int, ...]
    data: bytes
    producer_epoch: int
    started: float
    number: int
    """Among those of its partition and producer epoch."""
    in_flight: bool = False
    may_be_appended: bool = False
    is_over: bool = False


@dataclass(slots=True)
class _Lane:
    """What one partition is due."""

    key: PartitionKey
    partition: TopicPartition
    producer_epoch: int = 0
    next_sequence: int = 0
    next_number: int = 0
    batches: deque[_Batch] = field(default_factory=deque)


class Producer:
    """One producer. It puts its operations into `history` when they end."""

    def __init__(
        self,
        session: Session,
        producer_id: ProducerId,
        partitions: Sequence[tuple[PartitionKey, TopicPartition]],
        history: History,
        *,
        interval_seconds: float,
        records_max: int,
        in_flight_max: int,
        give_up_seconds: float,
        give_ups: float = 0.0,
    ) -> None:
        self._session = session
        self._producer_id = producer_id
        self._lanes = [_Lane(key, partition) for key, partition in partitions]
        self._history = history
        self._interval_seconds = interval_seconds
        self._records_max = records_max
        self._in_flight_max = in_flight_max
        self._give_up_seconds = give_up_seconds
        self._give_ups = give_ups
        self._values = count(producer_id * 1_000_000)
        self._is_stopped = False

    def unanswered(self, keys: Container[PartitionKey]) -> int:
        """Batches for these whose outcome is not known yet."""
        return sum(len(lane.batches) for lane in self._lanes if lane.key in keys)

    def start(self) -> None:
        self._session.after(self._session.rng.random() * self._interval_seconds, self._next)

    def stop(self) -> None:
        """Begin no new batch, and give none up: all that is under way is to be answered."""
        self._is_stopped = True
        self._give_up_seconds = float("inf")

    def abandon(self) -> None:
        """The run ends: what is still under way has no known outcome."""
        for lane in self._lanes:
            self._drop(lane)

    def _drop(self, lane: _Lane) -> None:
        for batch in list(lane.batches):
            # One that is on its way at this moment may still arrive.
            is_known = not (batch.may_be_appended or batch.in_flight)
            self._finish(lane, batch, Outcome.FAIL if is_known else Outcome.INFO, ())

    def _next(self) -> None:
        if self._is_stopped:
            return
        rng = self._session.rng
        lane = rng.choice(self._lanes)
        if not self._is_full(lane) and not self._waits_for_first(lane):
            self._begin(lane)
        self._session.after(rng.expovariate(1 / self._interval_seconds), self._next)

    def _is_full(self, lane: _Lane) -> bool:
        # Counted from the oldest that is unanswered, answered ones too: of what lies further back
        # a broker does not know any more whether it is a retry.
        batches = lane.batches
        return bool(batches) and lane.next_number - batches[0].number >= self._in_flight_max

    @staticmethod
    def _waits_for_first(lane: _Lane) -> bool:
        # A broker takes any sequence of a producer it does not know. So nothing may overtake the
        # first batch, or that would be refused for ever.
        return any(batch.number == 0 for batch in lane.batches)

    def _begin(self, lane: _Lane) -> None:
        size = self._session.rng.randint(1, self._records_max)
        values = tuple(next(self._values) for _ in range(size))
        now_ms = START_MS + int(1000 * self._session.now)
        data = encode_batch(
            [Record(Offset(i), now_ms, None, b"%d" % value, ()) for i, value in enumerate(values)],
            producer_id=self._producer_id,
            producer_epoch=lane.producer_epoch,
            base_sequence=lane.next_sequence,
            is_transactional=self._give_ups > 0,
        )
        batch = _Batch(values, data, lane.producer_epoch, self._session.now, lane.next_number)
        lane.next_number += 1
        lane.next_sequence += size
        lane.batches.append(batch)
        self._send(lane, batch)

    def _send(self, lane: _Lane, batch: _Batch) -> None:
        if batch.is_over:
            return
        if self._session.now - batch.started > self._give_up_seconds:
            self._give_up(lane)
            return
        target = self._session.leader(lane.key)
        if target is None:
            self._send_later(lane, batch)
            return
        request = Produce(self._session.next_request(), lane.key, batch.data)
        batch.in_flight = True
        self._session.ask(target, request, lambda answer: self._answered(lane, batch, answer))

    def _answered(self, lane: _Lane, batch: _Batch, answer: Answer | None) -> None:
        batch.in_flight = False
        if batch.is_over:
            return
        error = answer.error if isinstance(answer, Produced) else None
        if isinstance(answer, Produced) and answer.error is ErrorCode.NONE:
            first = answer.base_offset
            offsets = tuple(Offset(first + i) for i in range(len(batch.values)))
            self._finish(lane, batch, Outcome.OK, offsets)
            if self._give_ups and self._session.rng.random() < self._give_ups:
                self._give_transaction_up(lane)
            return
        if error is ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            raise Violation(
                "a retry is told where its batch lies",
                str(lane.partition),
                f"{self._session.name}: batch {batch.number} of {lane.next_number} is too old",
            )
        if error not in _NOT_APPENDED:
            batch.may_be_appended = True
            self._session.doubt(lane.key)
        self._send_later(lane, batch)

    def _send_later(self, lane: _Lane, batch: _Batch) -> None:
        seconds = _BACKOFF_SECONDS * (0.5 + self._session.rng.random())
        self._session.after(seconds, self._send, lane, batch)

    def _give_up(self, lane: _Lane) -> None:
        """Go on under a new epoch; what is under way may or may not have been done."""
        self._drop(lane)
        lane.producer_epoch += 1
        lane.next_sequence = lane.next_number = 0

    def _give_transaction_up(self, lane: _Lane) -> None:
        """Where that is lost on the way, a later one goes on with it."""
        target = self._session.leader(lane.key)
        if target is not None:
            number, epoch = self._session.next_request(), lane.producer_epoch
            request = GiveUp(number, lane.key, self._producer_id, epoch)
            self._session.ask(target, request, lambda answer: None)

    def _finish(
        self, lane: _Lane, batch: _Batch, outcome: Outcome, offsets: tuple[Offset, ...]
    ) -> None:
        batch.is_over = True
        lane.batches.remove(batch)
        self._history.sends.append(
            Send(
                client=self._session.name,
                partition=lane.partition,
                values=batch.values,
                key="k",
                started=batch.started,
                ended=self._session.now,
                outcome=outcome,
                offsets=offsets,
            )
        )
