"""What the log has of one transactional id: a value, replaced by the next one."""

from enum import IntEnum
from typing import Final

from tidemark.protocol.types import NO_PRODUCER, NO_TIMESTAMP_MS, ProducerId, TopicPartition
from tidemark.protocol.values import dataclass

EPOCH_MAX: Final = 2**15 - 1
"""The last epoch of a producer id: it fences, and nobody produces with it."""


class TransactionState(IntEnum):
    """By the numbers that Kafka's log has."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5

    @property
    def title(self) -> str:
        """The name that clients see."""
        return "".join(word.title() for word in self.name.split("_"))

    @property
    def is_prepared(self) -> bool:
        """It is decided, and markers are being written."""
        return self in (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)

    @property
    def is_commit(self) -> bool:
        return self in (TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """One transactional id."""

    producer_id: ProducerId
    epoch: int
    """The producer's own; while prepared, the one that its markers carry."""
    timeout_ms: int
    """How long a transaction may last."""
    state: TransactionState = TransactionState.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    """Those with records in it; while prepared, all that need a marker."""
    started_ms: int = NO_TIMESTAMP_MS
    """When the one that is open began, by the time of day."""
    updated_ms: int = NO_TIMESTAMP_MS
    previous_producer_id: ProducerId = NO_PRODUCER
    """Which id's epochs ran out when this one was given."""
    next_producer_id: ProducerId = NO_PRODUCER
    """While prepared: the id to go on with, for the epochs of this one have run out."""
    bumps_epoch: bool = False
    """Whether its client has the epoch raised at each end (KIP-890)."""

    @property
    def is_exhausted(self) -> bool:
        """No transaction may begin in the next epoch: it would be the last."""
        return self.epoch >= EPOCH_MAX - 1
