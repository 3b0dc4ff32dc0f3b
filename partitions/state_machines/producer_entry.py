"""What a partition remembers of one producer, and what a batch is to it: new, a retry, or wrong."""

from collections import deque
from typing import Final, NamedTuple

from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.records.header import BatchHeader
from tidemark.protocol.types import NO_EPOCH, Offset, ProducerId
from tidemark.protocol.values import dataclass

BATCHES_KEPT: Final = 5
"""How many requests a producer may have in flight: any of them may be retried, none older."""

SEQUENCE_MASK: Final = 0x7FFF_FFFF
APART_MAX: Final = 0x3FFF_FFFF
"""Sequences go in a circle: two that are farther apart than half of it are nearer the other way."""

KeptBatch = tuple[int, int, int, int, int]
"""A batch that is remembered: its first and last sequence, base and last offset, and timestamp."""


class SentBatch(NamedTuple):
    """What a producer calls a batch: its own id and epoch, and the batch's first sequence."""

    producer_id: ProducerId
    epoch: int
    first: int


@dataclass(frozen=True, slots=True)
class Fresh:
    """A batch to append."""


FRESH: Final = Fresh()


@dataclass(frozen=True, slots=True, kw_only=True)
class Duplicate:
    """A batch that is in the log already: where it lies, and when it was appended.

    It may not be committed yet; whoever answers waits for `next_offset` as for a fresh batch.
    """

    base_offset: Offset
    next_offset: Offset
    timestamp_ms: int


class Producer:
    """One of them, in one epoch."""

    __slots__ = ("appended", "batches", "coordinator_epoch", "epoch", "heard_ms", "next_sequence")

    def __init__(self, epoch: int, coordinator_epoch: int = NO_EPOCH) -> None:
        self.epoch = epoch
        self.coordinator_epoch = coordinator_epoch
        """Of the coordinator that ended its last transaction here."""
        self.next_sequence = 0
        # How many records of this epoch are known to be in the log without a gap up to
        # `next_sequence`. What lies further back was never seen, so it cannot be a duplicate.
        self.appended = 0
        self.heard_ms = 0
        self.batches: deque[KeptBatch] = deque(maxlen=BATCHES_KEPT)

    @property
    def last_sequence(self) -> int:
        """Of its last record in the log; -1 if there is none of this epoch."""
        return self.batches[-1][1] if self.batches else -1

    def take(self, first: int, delta: int, base_offset: int, timestamp_ms: int) -> None:
        """The batch that comes next has the sequences from `first` to `delta` behind it."""
        last = (first + delta) & SEQUENCE_MASK
        self.appended += delta + 1
        self.next_sequence = (last + 1) & SEQUENCE_MASK
        self.batches.append((first, last, base_offset, base_offset + delta, timestamp_ms))


def check_slowly(producer: Producer | None, header: BatchHeader) -> Fresh | Duplicate:
    """Whether a producer's batch, which is not what was expected next, may be appended.

    Raises `RequestError`.
    """
    first = header.base_sequence
    if first < 0:
        raise RequestError(
            ErrorCode.INVALID_RECORD, f"a batch of producer {header.producer_id} with no sequence"
        )
    if producer is None:
        return FRESH
    check_epoch(producer, header.producer_id, header.producer_epoch)
    if header.producer_epoch > producer.epoch:
        return _check_first_of_epoch(header)
    return _check_sequence(producer, header)


def check_epoch(producer: Producer, producer_id: int, epoch: int) -> None:
    """Raises `RequestError` INVALID_PRODUCER_EPOCH for an epoch that a newer one has replaced."""
    if epoch < producer.epoch:
        raise RequestError(
            ErrorCode.INVALID_PRODUCER_EPOCH,
            f"producer {producer_id} is at epoch {producer.epoch}, and this is of epoch {epoch}",
        )


def _check_first_of_epoch(header: BatchHeader) -> Fresh:
    if header.base_sequence == 0:
        return FRESH
    raise RequestError(
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        f"producer {header.producer_id} starts epoch {header.producer_epoch} "
        f"at sequence {header.base_sequence} instead of 0",
    )


def _check_sequence(producer: Producer, header: BatchHeader) -> Fresh | Duplicate:
    first, last = header.base_sequence, header.last_sequence
    if first == producer.next_sequence:
        return FRESH
    for first_kept, last_kept, base_offset, last_offset, timestamp_ms in producer.batches:
        if first_kept == first and last_kept == last:
            return Duplicate(
                base_offset=Offset(base_offset),
                next_offset=Offset(last_offset + 1),
                timestamp_ms=timestamp_ms,
            )
    if _lies_before_window(producer, first, last):
        raise RequestError(
            ErrorCode.DUPLICATE_SEQUENCE_NUMBER,
            f"sequences {first} to {last} of producer {header.producer_id} are in the log, "
            f"more than {BATCHES_KEPT} batches back",
        )
    raise RequestError(
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        f"sequence {first} of producer {header.producer_id}, where {producer.next_sequence} "
        "comes next",
    )


def _lies_before_window(producer: Producer, first: int, last: int) -> bool:
    """Whether all of `first` to `last` is known to be in the log, older than any batch kept."""
    if not producer.batches:
        return False
    back_to_first = (producer.next_sequence - first) & SEQUENCE_MASK
    back_to_last = (producer.next_sequence - last) & SEQUENCE_MASK
    oldest_kept = producer.batches[0][0]
    window = (producer.next_sequence - oldest_kept) & SEQUENCE_MASK
    return window < back_to_last <= back_to_first <= min(producer.appended, APART_MAX)
