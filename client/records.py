"""Records as this library hands them out.

Named tuples, where the rest of the house uses frozen dataclasses: they are as immutable, and one
takes a quarter of the time to make, which for these is paid per record.
"""

from typing import NamedTuple

from tidemark.protocol.types import NO_OFFSET, Epoch, Offset, TopicPartition

Headers = tuple[tuple[str, bytes | None], ...]

CREATE_TIME = 0
LOG_APPEND_TIME = 1


class ConsumerRecord(NamedTuple):
    """One record as it was read."""

    topic: str
    partition: int
    offset: Offset
    timestamp_ms: int
    timestamp_type: int
    """`CREATE_TIME` (the producer's clock) or `LOG_APPEND_TIME` (the broker's)."""
    key: bytes | None
    value: bytes | None
    headers: Headers
    leader_epoch: Epoch
    """The epoch of the leader that appended it; -1 in batches from brokers without epochs."""


class RecordMetadata(NamedTuple):
    """Where a record was stored.

    `offset` is -1 when the broker does not say: with acks=0, and for a duplicate that it no
    longer remembers. `timestamp_ms` is the broker's where the topic stamps at append, else the
    record's own.
    """

    topic: str
    partition: int
    offset: Offset
    timestamp_ms: int


class FetchedBatches(NamedTuple):
    """Record batches of one partition, back to back and undecoded, as one fetch brought them.

    `data` may begin before `fetch_offset` (a batch is never cut at its front) and may end in an
    incomplete batch, which the next fetch brings whole. Control batches are still in it.
    """

    topic_partition: TopicPartition
    fetch_offset: Offset
    next_offset: Offset
    high_watermark: Offset
    last_epoch: Epoch
    """The leader epoch of the last whole batch."""
    data: memoryview
    aborted: tuple[tuple[int, Offset], ...] = ()
    """Aborted transactions that overlap it, as (producer id, first offset); only for readers of
    committed transactions."""
    log_start: Offset = NO_OFFSET
    last_stable_offset: Offset = NO_OFFSET
