"""What can be wrong with a history."""

from dataclasses import dataclass
from enum import StrEnum

from tidemark.protocol.types import TopicPartition
from tidemark.testing.checkers.history import Value


class Kind(StrEnum):
    """The anomalies, by the names under which Jepsen's reports have them, where they do."""

    LOST_WRITE = "lost-write"
    """Acknowledged, and never polled, though a record behind it was."""
    UNSEEN = "unseen"
    """Acknowledged, and never polled, nor anything behind it, by reads that went to the end."""
    ABORTED_READ = "G1a"
    """Polled, though its send has failed for certain."""
    PHANTOM = "phantom"
    """Polled, though nobody has sent it."""
    DUPLICATE = "duplicate"
    """One value at several offsets."""
    INCONSISTENT_OFFSETS = "inconsistent-offsets"
    """Several values at one offset."""
    OFFSET_REUSED = "offset-reused"
    """One offset acknowledged to two sends."""
    NONMONOTONIC_SEND = "nonmonotonic-send"
    """A producer's later send got a lower offset than its earlier one."""
    INT_NONMONOTONIC_SEND = "int-nonmonotonic-send"
    """The same within one send."""
    NONMONOTONIC_POLL = "nonmonotonic-poll"
    """A consumer's later poll began at or before where its last one ended."""
    INT_NONMONOTONIC_POLL = "int-nonmonotonic-poll"
    """The same within one poll."""
    POLL_SKIP = "poll-skip"
    """A consumer's later poll left out records behind its last one."""
    INT_POLL_SKIP = "int-poll-skip"
    """The same within one poll."""
    REAL_TIME_ORDER = "real-time-order"
    """A send began when a record was known to be there, and got a lower offset than it."""
    KEY_ORDER = "key-order"
    """Records that one producer sent for one key lie in another order than it sent them."""
    WATERMARK_REGRESSION = "watermark-regression"
    """The end of what may be read went back."""
    TORN_TRANSACTION = "torn-transaction"
    """A part of a transaction counts, and another part does not."""
    LOST_INPUT = "lost-input"
    """Committed as read, in a transaction whose output is not there."""
    REPEATED_INPUT = "repeated-input"
    """Read and answered twice, each time in a transaction that was committed."""
    LOST_COMMIT = "lost-commit"
    """How far a group has read went back behind what was acknowledged."""
    COUNT = "count"
    """A reader got a record twice, or not at all."""


@dataclass(frozen=True, slots=True)
class Anomaly:
    """One thing that is wrong."""

    kind: Kind
    partition: TopicPartition
    what: str
    value: Value | None = None
    """Of the record, where it is one record's."""

    def __str__(self) -> str:
        return f"{self.kind} in {self.partition}: {self.what}"
