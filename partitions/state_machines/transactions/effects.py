"""What comes out of a step of the coordinator. The caller replies at once, appends the writes in
their order, and sends the markers, again and again, until each partition has its own."""

from dataclasses import field

from tidemark.partitions.state_machines.token import Token
from tidemark.partitions.state_machines.transactions.requests import Answer
from tidemark.partitions.state_machines.transactions.transaction import Transaction
from tidemark.protocol.types import ProducerId, TopicPartition
from tidemark.protocol.values import dataclass


@dataclass(frozen=True, slots=True)
class Reply:
    token: Token
    answer: Answer


@dataclass(frozen=True, slots=True)
class Write:
    """A record to append. Writes are appended, and reported, in their order."""

    number: int
    transactional_id: str
    value: Transaction | None
    """None is a tombstone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Markers:
    """What ends a transaction in these partitions."""

    transactional_id: str
    producer_id: ProducerId
    epoch: int
    is_commit: bool
    bumps_epoch: bool
    """Whether the epoch is larger than that of any record in the transaction."""
    partitions: frozenset[TopicPartition]


@dataclass(slots=True)
class Effects:
    replies: list[Reply] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)
    markers: list[Markers] = field(default_factory=list)
