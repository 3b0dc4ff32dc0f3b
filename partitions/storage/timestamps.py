"""Looking for records by their timestamps: the index finds a batch, the batch is opened.

A batch's header states the largest timestamp of its records. It is the producer's word; one that
overstates it costs a look into the batch, one that understates it hides its records from here.
"""

from collections.abc import Iterator, Sequence
from itertools import starmap
from typing import NamedTuple

from tidemark.partitions.storage.segment import Segment
from tidemark.protocol.records.header import BatchHeader
from tidemark.protocol.records.skimming import times
from tidemark.protocol.types import Offset


class TimestampAndOffset(NamedTuple):
    """A record, as ListOffsets answers it."""

    timestamp_ms: int
    offset: Offset


def first_at_or_after(
    segments: Sequence[Segment], timestamp_ms: int, start_offset: Offset, end_offset: Offset
) -> TimestampAndOffset | None:
    """The first record between the offsets whose timestamp is this or later."""
    for segment in segments:
        if segment.base_offset >= end_offset:
            break
        largest = segment.index.largest
        if largest is None or largest.timestamp_ms < timestamp_ms:
            continue
        found = _first_in(segment, timestamp_ms, start_offset, end_offset)
        if found is not None:
            return found
    return None


def _first_in(
    segment: Segment, timestamp_ms: int, start_offset: Offset, end_offset: Offset
) -> TimestampAndOffset | None:
    earlier = segment.index.earlier(timestamp_ms)
    # All records up to that entry's offset are earlier; it may be in the middle of a walk.
    start = max(start_offset, segment.base_offset if earlier is None else earlier.offset)
    for position, header in segment.batches_from(segment.position_of(start)):
        if header.base_offset >= end_offset:
            return None
        if header.max_timestamp < timestamp_ms:
            continue
        for found in _records(segment, position, header):
            if found.timestamp_ms >= timestamp_ms and start_offset <= found.offset < end_offset:
                return found
    return None


def largest(
    segments: Sequence[Segment], start_offset: Offset, end_offset: Offset
) -> TimestampAndOffset | None:
    """The first of the records between the offsets that have the largest timestamp."""
    best: TimestampAndOffset | None = None
    for segment in segments:
        if segment.base_offset >= end_offset or segment.end_offset <= start_offset:
            continue
        known = segment.index.largest
        if known is not None and (best is None or known.timestamp_ms > best.timestamp_ms):
            best = _largest_in(segment, best, start_offset, end_offset)
    return best


def _largest_in(
    segment: Segment,
    best: TimestampAndOffset | None,
    start_offset: Offset,
    end_offset: Offset,
) -> TimestampAndOffset | None:
    """The first record with a larger timestamp than the best so far; else that one."""
    # All before the last entry is smaller, if the entry's own batch is looked at.
    entry = segment.index.largest_before(end_offset)
    start = max(start_offset, segment.base_offset if entry is None else entry.offset)
    candidate: tuple[int, BatchHeader] | None = None
    least = -1 if best is None else best.timestamp_ms
    for position, header in segment.batches_from(segment.position_of(start)):
        if header.base_offset >= end_offset:
            break
        if header.max_timestamp <= least:
            continue
        if start_offset <= header.base_offset and header.next_offset <= end_offset:
            candidate, least = (position, header), header.max_timestamp
            continue
        # Only some of its records are asked for, which need not have the batch's largest.
        for found in _records(segment, position, header):
            if start_offset <= found.offset < end_offset and found.timestamp_ms > least:
                best, candidate, least = found, None, found.timestamp_ms
    if candidate is not None:
        for found in _records(segment, *candidate):
            if best is None or found.timestamp_ms > best.timestamp_ms:
                best = found
    return best


def _records(segment: Segment, position: int, header: BatchHeader) -> Iterator[TimestampAndOffset]:
    """As far as they are asked for. Raises `CorruptBatch` when it comes to what is none."""
    if not header.is_control:
        data = segment.file.pread(header.size_bytes, position)
        yield from starmap(TimestampAndOffset, times(data, header))
