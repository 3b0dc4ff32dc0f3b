"""What clients did, as plain values.

A client may be anything that acts in order: a producer, a consumer. Times are seconds on one clock
that all clients share. Values are unique within their partition: a checker tells records by them.
"""

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple, TypeAlias

from tidemark.protocol.types import Epoch, Offset, TopicPartition

Value: TypeAlias = int | str | bytes


class Outcome(Enum):
    """What a client knows when an operation is over."""

    OK = "ok"
    FAIL = "fail"
    """It did not happen and never will: the broker refused it before it did anything."""
    INFO = "info"
    """It may have happened, or may happen yet: a timeout, a lost connection."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """Some records that a producer wanted in a partition, one batch."""

    client: str
    partition: TopicPartition
    values: tuple[Value, ...]
    key: str | None = None
    started: float
    ended: float
    outcome: Outcome
    offsets: tuple[Offset, ...] = ()
    """Of `OK`, one for each value; empty if the broker only said that it has them already."""


class Polled(NamedTuple):
    """One record as a consumer got it."""

    partition: TopicPartition
    offset: Offset
    value: Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Poll:
    """The records that one poll gave, in the order in which the consumer saw them."""

    client: str
    started: float
    ended: float
    records: tuple[Polled, ...]
    is_repositioned: bool = False
    """Whether the consumer was told since its last poll where to read: a seek, a rebalance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watermark:
    """The end of what may be read, as a broker told it to a client."""

    partition: TopicPartition
    epoch: Epoch
    offset: Offset
    started: float
    ended: float


@dataclass(slots=True)
class History:
    """What all clients did. Each client's operations are in the order in which it began them."""

    sends: list[Send] = field(default_factory=list)
    polls: list[Poll] = field(default_factory=list)
    watermarks: list[Watermark] = field(default_factory=list)
