"""Looking for records by their timestamps: the index finds a batch, the batch is opened.

A batch's header states the largest timestamp of its records. It is the producer's word; one that
overstates it costs a look into the batch, one that understates it hides its records from here.
"""

from collections.abc import Sequence
from typing import NamedTuple

from tidemark.partitions.storage.segment import Segment
from tidemark.protocol.records.header import BatchHeader
from tidemark.protocol.records.records import decode_records
from tidemark.protocol.types import Offset


class TimestampAndOffset(NamedTuple):
    """A record, as ListOffsets answers it."""

    timestamp_ms: int
    offset: Offset


def first_at_or_after(
    segment: Segment, timestamp_ms: int, start_offset: Offset, end_offset: Offset
) -> TimestampAndOffset | None:
    """The first record between the offsets whose timestamp is this or later."""
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
        offset = _offset_of_largest(segment, best, start_offset, end_offset)
        if offset is None:
            continue
        position, header = next(segment.batches_from(segment.position_of(offset)))
        for found in _records(segment, position, header):
            if start_offset <= found.offset < end_offset and (
                best is None or found.timestamp_ms > best.timestamp_ms
            ):
                best = found
    return best


def _offset_of_largest(
    segment: Segment, best: TimestampAndOffset | None, start_offset: Offset, end_offset: Offset
) -> Offset | None:
    """An offset in the batch with the largest timestamp; `None` if none is above the best."""
    known = segment.index.largest
    least = -1 if best is None else best.timestamp_ms
    if known is None or known.timestamp_ms <= least:
        return None
    if start_offset <= known.offset < end_offset:
        return known.offset
    # The segment's largest lies outside: look at all that lies inside.
    offset = None
    for _, header in segment.batches_from(segment.position_of(start_offset)):
        if header.base_offset >= end_offset:
            break
        if header.max_timestamp > least:
            least, offset = header.max_timestamp, header.last_offset
    return offset


def _records(segment: Segment, position: int, header: BatchHeader) -> list[TimestampAndOffset]:
    data = segment.file.pread(header.size_bytes, position)
    return [TimestampAndOffset(r.timestamp_ms, r.offset) for r in decode_records(data)]
