"""What coordinators and partitions know of transactions."""

from tidemark.client.descriptions import BrokerDescription
from tidemark.protocol.types import Offset, ProducerId, TopicPartition
from tidemark.protocol.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionListing:
    """One transactional id, as a list has it."""

    transactional_id: str
    producer_id: ProducerId
    state: str
    """Empty, Ongoing, PrepareCommit, PrepareAbort, CompleteCommit or CompleteAbort."""
    coordinator: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionDescription:
    """One transactional id, as its coordinator knows it."""

    transactional_id: str
    coordinator: BrokerDescription
    state: str
    producer_id: ProducerId
    epoch: int
    timeout_ms: int
    started_ms: int | None
    """When the open transaction began; `None`: none is open."""
    partitions: frozenset[TopicPartition]
    """Those of the open transaction; once it is decided, those that have no marker yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedTransaction:
    """What is needed to end a transaction that a producer has stored, and left open."""

    transactional_id: str
    producer_id: ProducerId
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HangingTransaction:
    """A transaction that is open in a partition, and that no coordinator is going to end."""

    partition: TopicPartition
    producer_id: ProducerId
    epoch: int
    coordinator_epoch: int
    """Of the last marker that the partition has of the producer; 0 if it has none."""
    start: Offset
    last_timestamp_ms: int | None
