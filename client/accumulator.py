"""What a producer holds of one partition: records becoming batches, and batches becoming settled.

A batch is *open* while records are added, *sealed* when it is full, *in flight* from being taken
to being answered, *returned* when its answer says to try again, and then settled. Batches leave
in the order in which they were opened, and this holds through retries: after a failure nothing
more is taken until everything in flight is answered, and then the returned ones go first.

An idempotent producer's batches carry sequences, which the broker checks: it knows a repetition by
its sequence and answers with the first one's offset, and refuses a gap. A gap appears when a batch
is given up after it was given a sequence, or when the broker has forgotten this producer. Then the
partition goes on in the next producer epoch, where sequences begin at 0 again. That a batch was
given up is no reason to do so yet, because those behind it may be stored already, unknown to us,
and under new numbers they would be stored twice. Only when the broker has refused the *first* that
is left is it clear that it has none of them.

Pure: time is an argument.
"""

import math
from bisect import insort
from collections import deque
from typing import Final

from tidemark.client.batches import Batch, Failed, Stored
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.records.compression import Compression
from tidemark.protocol.records.records import Record
from tidemark.protocol.types import NO_OFFSET, NO_TIMESTAMP_MS, Offset
from tidemark.protocol.values import dataclass

_REQUEST_BYTES_USUAL: Final = 100 * 1024 * 1024
"""A broker's `socket.request.max.bytes`, if nobody has changed it. Clients are not told."""
_EPOCH_MAX: Final = 2**15 - 1
_SEQUENCE_MASK: Final = 2**31 - 1

# The broker's sequences and ours do not fit together.
_SEQUENCE_BROKEN: Final = frozenset(
    {
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.INVALID_PRODUCER_EPOCH,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchLimits:
    """How batches are made and how many may be on their way."""

    batch_bytes: int = 16 * 1024
    in_flight_max: int = 5
    compression: Compression = Compression.NONE


@dataclass(frozen=True, slots=True)
class ProducerIdentity:
    """What an idempotent producer is known by; the broker gave it."""

    producer_id: int
    epoch: int
    is_transactional: bool = False
    """Whether its epochs are its coordinator's to raise, and what is given up fails the rest."""


class PartitionQueue:
    """See the module."""

    def __init__(
        self, topic: str, partition: int, limits: BatchLimits, identity: ProducerIdentity | None
    ) -> None:
        self.topic = topic
        self.partition = partition
        self._limits = limits
        self._identity = identity
        self._next_sequence = 0
        self._next_order = 0
        self._open: Batch | None = None
        self._sealed: deque[Batch] = deque()
        self._returned: list[Batch] = []
        self._in_flight: set[Batch] = set()
        self._is_known = identity is None  # to the broker; see take()
        self._is_alone = False  # what is in flight, until it is answered
        self._is_recovering = False  # after a failure, until nothing is in flight
        self._must_renumber = False
        self._not_before = -math.inf
        self.filled_at = -math.inf
        """When something was taken in last, to within the time that its batch took to fill."""

    # Filling

    def try_add(self, record: Record, size_bytes: int) -> Batch | None:
        """Put a record into the open batch; None if there is none, or no room in it."""
        batch = self._open
        if batch is None or batch.size_bytes + size_bytes > self._limits.batch_bytes:
            return None
        batch.records.append(record)
        batch.count += 1
        batch.size_bytes += size_bytes
        return batch

    def open(self, record: Record, size_bytes: int, now: float) -> Batch:
        """Seal the batch that is open and put a record into a new one.

        A record that is larger than a batch may be gets one for itself.
        """
        self.seal()
        self._open = batch = Batch(self.topic, self.partition, now)
        self.filled_at = now
        batch.records.append(record)
        batch.count, batch.size_bytes = 1, size_bytes
        return batch

    def add_ready(self, data: bytes, count: int, now: float) -> Batch:
        """Put a whole encoded batch behind what is there."""
        self.seal()
        batch = Batch.ready(self.topic, self.partition, now, data, count)
        self.filled_at = now
        self._sealed.append(batch)
        return batch

    def seal(self) -> None:
        """Add nothing more to the open batch, which needs no linger then."""
        if self._open is not None:
            self._sealed.append(self._open)
            self._open = None

    # Sending

    def due(self, linger_seconds: float) -> float | None:
        """When the next batch may be taken; None: not before something else happens."""
        if self._is_recovering or len(self._in_flight) >= self._limits.in_flight_max:
            return None
        if self._in_flight and (self._is_alone or self._returned):
            return None
        if self._returned or self._sealed:
            return self._not_before
        if self._open is not None:
            return max(self._open.created_at + linger_seconds, self._not_before)
        return None

    @property
    def has_more(self) -> bool:
        """Whether there is anything to be taken, now or later."""
        return bool(self._returned or self._sealed or self._open is not None)

    @property
    def is_busy(self) -> bool:
        """Whether anything is neither stored nor given up."""
        return self.has_more or bool(self._in_flight)

    @property
    def refusal(self) -> str | None:
        """What was last answered to that which waits to be sent again; `None` if nothing does."""
        return _last_answer(self._returned[0]) if self._returned else None

    @property
    def next_bytes(self) -> int:
        """The size of what `take` would give."""
        if self._returned:
            return self._returned[0].size_bytes
        if self._sealed:
            return self._sealed[0].size_bytes
        return self._open.size_bytes if self._open is not None else 0

    def take(self) -> Batch:
        """The next batch, encoded and in flight from now on. Only when `due` says so.

        Two go alone. The first of a producer that the broker does not know: it would take any
        sequence for the first, also that of a batch behind one that failed. And a repeated one:
        it may be stored, and while others are stored behind it, the broker forgets its sequence.
        """
        if self._returned:
            batch = self._returned.pop(0)
        else:
            if not self._sealed:
                self.seal()
            batch = self._sealed.popleft()
            batch.order, self._next_order = (self._next_order, 0), self._next_order + 1
            batch.encode(self._limits.compression)
        if self._identity is not None and batch.sequence is None:
            self._stamp(batch, self._identity, self._next_sequence)
            self._next_sequence = (self._next_sequence + batch.count) & _SEQUENCE_MASK
        self._is_alone = batch.attempts > 0 or not self._is_known
        batch.attempts += 1
        self._in_flight.add(batch)
        return batch

    # Answers

    def answered(
        self,
        batch: Batch,
        code: ErrorCode,
        *,
        base_offset: Offset = NO_OFFSET,
        append_time_ms: int = NO_TIMESTAMP_MS,
        message: str | None = None,
        retry_at: float,
    ) -> None:
        """The answer for a batch in flight: settles it, or returns it to be sent again.

        A lost connection is answered with NETWORK_EXCEPTION, which says that the outcome is not
        known. Nothing of this partition is sent before `retry_at` if it is returned.
        """
        if batch not in self._in_flight:
            return  # abandoned meanwhile
        self._in_flight.remove(batch)
        self._is_alone = False
        if code is ErrorCode.NONE:
            self._is_known = True
            batch.settle(Stored(base_offset, append_time_ms))
        elif code is ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            batch.settle(Stored(NO_OFFSET))
        elif code in _SEQUENCE_BROKEN and self._renumbers:
            # While recovering, it may be the gap that an earlier batch leaves until it is repeated.
            self._must_renumber |= not self._is_recovering
            self._give_back(batch, code, retry_at, message)
        elif code.retriable:
            self._give_back(batch, code, retry_at, message)
        elif code is ErrorCode.MESSAGE_TOO_LARGE and batch.can_split and batch.count > 1:
            self._split(batch)
        else:
            batch.settle(Failed(RequestError(code, _about(batch, message))))
        if self._is_recovering and not self._in_flight:
            self._recover()

    def retry_from(self, at: float) -> None:
        """What was returned need not wait beyond `at`: it is known now whom to send it to."""
        self._not_before = min(self._not_before, at)

    def expire(self, created_before: float, timeout_seconds: float, *, is_led: bool = True) -> bool:
        """Give up what has been here since before then and is not in flight now.

        `is_led` is whether there is anybody to send it to. Gives whether there was any.
        """
        waiting = [*self._returned, *self._sealed]
        if self._open is not None:
            waiting.append(self._open)
        expired = [batch for batch in waiting if batch.created_at < created_before]
        for batch in expired:
            self._forget(batch)
            why = "" if is_led else "; the partition has no leader"
            why += f"; the last answer was {_last_answer(batch)}" if batch.last_error else ""
            why += _doubt(batch)
            what = f"not stored within {timeout_seconds:g} s{why}"
            error = RequestError(ErrorCode.REQUEST_TIMED_OUT, _about(batch, what))
            batch.settle(Failed(error))
        return bool(expired)

    def abandon(self, error: RequestError) -> None:
        """Give up everything, as the producer is closed."""
        self.seal()
        for batch in [*self._in_flight, *self._returned, *self._sealed]:
            batch.settle(Failed(error))
        self._in_flight.clear()
        self._returned.clear()
        self._sealed.clear()

    def begin(self, identity: ProducerIdentity) -> None:
        """Go on in another epoch of a transactional producer. Nothing of the one before is left."""
        assert not [*self._in_flight, *self._returned, *self._sealed]
        assert self._open is None
        self._identity = identity
        self._next_sequence = 0
        self._is_known = False
        self._is_alone = self._is_recovering = self._must_renumber = False
        self._not_before = -math.inf

    @property
    def _renumbers(self) -> bool:
        return self._identity is not None and not self._identity.is_transactional

    def _stamp(self, batch: Batch, identity: ProducerIdentity, sequence: int) -> None:
        batch.stamp(
            identity.producer_id,
            identity.epoch,
            sequence,
            is_transactional=identity.is_transactional,
        )

    def _give_back(
        self, batch: Batch, code: ErrorCode, retry_at: float, message: str | None = None
    ) -> None:
        batch.last_error, batch.last_message = code, message
        insort(self._returned, batch, key=lambda returned: returned.order)
        self._not_before = retry_at
        self._is_recovering = True

    def _split(self, batch: Batch) -> None:
        """Send it again as two, which together have its sequences."""
        sequence = batch.sequence
        for half in batch.split(self._limits.compression):
            if self._identity is not None and sequence is not None:
                self._stamp(half, self._identity, sequence)
                sequence = (sequence + half.count) & _SEQUENCE_MASK
            self._give_back(half, ErrorCode.MESSAGE_TOO_LARGE, -math.inf)

    def _forget(self, batch: Batch) -> None:
        if batch is self._open:
            self._open = None
        elif batch in self._returned:
            self._returned.remove(batch)
        else:
            self._sealed.remove(batch)

    def _recover(self) -> None:
        """Nothing is in flight any more: go on, in a new epoch if sequences have to begin anew."""
        self._is_recovering = False
        if not self._must_renumber:
            return
        self._must_renumber = False
        assert self._identity is not None
        if self._identity.epoch == _EPOCH_MAX:
            error = RequestError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"{self.topic}-{self.partition}: out of producer epochs; open a new producer",
            )
            self.abandon(error)
            return
        self._identity = ProducerIdentity(self._identity.producer_id, self._identity.epoch + 1)
        self._next_sequence = 0
        self._is_known = False
        for batch in self._returned:
            batch.sequence = None


def _last_answer(batch: Batch) -> str:
    assert batch.last_error is not None
    name = batch.last_error.name
    return f"{name}: {batch.last_message}" if batch.last_message else name


def _doubt(batch: Batch) -> str:
    """A broker closes the connection of a request that is too large for it, and says nothing."""
    size_bytes = len(batch.data or b"")
    if batch.last_error is not ErrorCode.NETWORK_EXCEPTION or size_bytes < _REQUEST_BYTES_USUAL:
        return ""
    return (
        f", and its {size_bytes} bytes may be more than the broker takes in one request"
        f" (socket.request.max.bytes, {_REQUEST_BYTES_USUAL} where it is not set)"
    )


def _about(batch: Batch, message: str | None) -> str:
    name = f"{batch.topic}-{batch.partition}"
    return f"{name}: {message}" if message else name
