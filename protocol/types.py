"""The small values that every room speaks of, each with a type of its own.

The type checker keeps an offset from being passed where an epoch is wanted. At run time each is an
int, and to make one a call of 40 ns (`NewType`).
"""

from typing import Final, NamedTuple, NewType, TypeAlias

from tidemark.protocol.values import dataclass

Offset = NewType("Offset", int)
"""The position of a record in its partition, from 0."""

Epoch = NewType("Epoch", int)
"""A leader epoch: grows by at least one at every election, never goes back."""

NodeId = NewType("NodeId", int)
ProducerId = NewType("ProducerId", int)

BytesLike: TypeAlias = bytes | bytearray | memoryview
"""What is read as bytes without a copy."""

NO_OFFSET: Final = Offset(-1)
NO_EPOCH: Final = Epoch(-1)
NO_TIMESTAMP_MS: Final = -1
NO_PRODUCER: Final = ProducerId(-1)

READ_UNCOMMITTED: Final = 0
READ_COMMITTED: Final = 1
"""What a reader sees of transactions, in Kafka's numbers."""


@dataclass(frozen=True, slots=True, order=True)
class TopicPartition:
    """One partition of one topic, by name."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class Position(NamedTuple):
    """A place in a log: the epoch of the entry that ends there, and its end offset (exclusive).

    Within an epoch one leader appends, and offsets only grow: so two logs that hold the same
    position are the same up to it. The order is Raft's up-to-dateness (§5.4.1): the epoch first,
    then the length.
    """

    epoch: Epoch
    offset: Offset

    def __str__(self) -> str:
        return f"{self.offset}@{self.epoch}"


ORIGIN: Final = Position(NO_EPOCH, Offset(0))
"""Where every log begins, before its first entry."""
