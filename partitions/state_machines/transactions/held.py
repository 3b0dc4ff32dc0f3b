"""What the coordinator keeps of one id beside what the log has of it."""

from typing import NamedTuple

from tidemark.partitions.state_machines.token import Token
from tidemark.partitions.state_machines.transactions.effects import Write
from tidemark.partitions.state_machines.transactions.requests import Answer, Request
from tidemark.partitions.state_machines.transactions.transaction import Transaction
from tidemark.protocol.types import TopicPartition


class Asked(NamedTuple):
    """A request, and until when, in ticks, it may wait."""

    request: Request
    token: Token
    until_ms: int


class Unstored:
    """A change on its way to the log, and the answer that waits for it."""

    __slots__ = ("answer", "forgiven_epoch", "token", "write")

    def __init__(
        self, write: Write, answer: Answer, token: Token | None, forgiven_epoch: int | None
    ) -> None:
        self.write = write
        self.answer = answer
        self.token = token
        self.forgiven_epoch = forgiven_epoch


class Held:
    """One id: what the log has of it, and what goes on about it."""

    __slots__ = ("deadline_ms", "forgiven_epoch", "unmarked", "unstored", "value", "waiting")

    def __init__(self, value: Transaction | None = None) -> None:
        self.value = value
        self.unstored: Unstored | None = None
        """The change that is on its way to the log; there is one at a time."""
        self.unmarked: set[TopicPartition] = set()
        """While prepared: the partitions that have no marker yet."""
        self.forgiven_epoch: int | None = None
        """As in `Decision`."""
        self.deadline_ms: int | None = None
        """In ticks: when the open transaction is aborted, or what failed is tried again."""
        self.waiting: tuple[Asked, ...] = ()
        """In the order of their coming."""
