"""What the coordinator is asked for, and what it answers: values, without their encoding."""

from dataclasses import replace
from typing import Self

from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.types import NO_PRODUCER, ProducerId, TopicPartition
from tidemark.protocol.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Init:
    """A producer takes the id over, and whatever an earlier one left open is aborted."""

    transactional_id: str
    timeout_ms: int
    producer_id: ProducerId = NO_PRODUCER
    """With `epoch`: what it was given before, to go on after an error (KIP-360)."""
    epoch: int = -1
    fresh_id: ProducerId | None = None
    """A producer id that nobody has had; it is needed where `needs_fresh_id` says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Add:
    """Partitions are about to get records of the transaction; the first ones begin it."""

    transactional_id: str
    producer_id: ProducerId
    epoch: int
    partitions: frozenset[TopicPartition]
    bumps_epoch: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Verify:
    """A partition's leader asks whether these are in the transaction that is open."""

    transactional_id: str
    producer_id: ProducerId
    epoch: int
    partitions: frozenset[TopicPartition]

    @classmethod
    def of(cls, add: Add) -> Self:
        """Whether what that would add is in."""
        return cls(
            transactional_id=add.transactional_id,
            producer_id=add.producer_id,
            epoch=add.epoch,
            partitions=add.partitions,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """The producer's decision."""

    transactional_id: str
    producer_id: ProducerId
    epoch: int
    is_commit: bool
    bumps_epoch: bool = False
    fresh_id: ProducerId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Abort:
    """An operator ends a transaction that hangs; its producer is fenced."""

    transactional_id: str


Request = Init | Add | Verify | End | Abort


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    error: ErrorCode = ErrorCode.NONE

    def refused(self, error: ErrorCode) -> Self:
        """The same answer, with an error."""
        return replace(self, error=error)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerAnswer(Answer):
    """To `Init` and `End`: what to go on with. An error says nothing of either."""

    producer_id: ProducerId = NO_PRODUCER
    epoch: int = -1

    def refused(self, error: ErrorCode) -> Self:
        return replace(self, error=error, producer_id=NO_PRODUCER, epoch=-1)


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyAnswer(Answer):
    missing: frozenset[TopicPartition] = frozenset()
    """Those that are not in the transaction."""
