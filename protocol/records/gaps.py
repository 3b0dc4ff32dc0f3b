"""Batches without records: what compaction leaves where records were.

A log's batches join without gaps, always, so that every part of it can be checked against its
neighbours and compared with another replica's by epoch and offset. Where compaction has dropped
whole batches, one batch of 61 bytes stands for all their offsets, up to the end of a leader epoch:
a *gap*. It has no producer, no timestamp and no records. Clients step over it, for Kafka too keeps
batches that have become empty.

A gap may be cut anywhere, for there is nothing in it.
"""

from typing import Final

from tidemark.protocol.records.compression import Compression
from tidemark.protocol.records.header import (
    COMPRESSION_BITS,
    TRANSACTIONAL_BIT,
    BatchHeader,
    build_batch,
)
from tidemark.protocol.types import NO_TIMESTAMP_MS, Epoch, Offset

GAP_OFFSETS_MAX: Final = 2**31
"""The last offset's distance from the first is an int32."""


def gap_batch(base_offset: Offset, end_offset: Offset, epoch: Epoch) -> bytes:
    """A batch that takes up these offsets and has nothing in it."""
    assert base_offset < end_offset <= base_offset + GAP_OFFSETS_MAX
    header = BatchHeader.open(
        base_offset=base_offset,
        epoch=epoch,
        attributes=Compression.NONE,
        base_timestamp=NO_TIMESTAMP_MS,
        max_timestamp=NO_TIMESTAMP_MS,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        record_count=0,
    )
    return build_batch(b"", header._replace(last_offset_delta=end_offset - base_offset - 1))


def is_gap(header: BatchHeader) -> bool:
    return header.record_count == 0 and header.producer_id < 0


def emptied(header: BatchHeader) -> bytes:
    """A producer's batch without its records, kept for what it says of the producer's sequences.

    It is of no transaction any more: nothing in it could be committed or aborted.
    """
    attributes = header.attributes & ~(COMPRESSION_BITS | TRANSACTIONAL_BIT)
    return build_batch(b"", header._replace(attributes=attributes, record_count=0))
