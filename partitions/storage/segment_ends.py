"""What segments begin and end with, by the few headers behind their last index entry."""

from collections.abc import Sequence
from typing import Final

from tidemark.partitions.storage.epoch_rows import EpochsByOffset
from tidemark.partitions.storage.files import corrupt
from tidemark.partitions.storage.segment import Segment
from tidemark.partitions.storage.tail_check import misplaced
from tidemark.protocol.errors import StorageError
from tidemark.protocol.records.header import BatchHeader
from tidemark.protocol.types import Offset

_SMALL_SEGMENT_BYTES: Final = 16 * 1024
"""Walked from its start rather than from its index: two files less to open."""


def end_by_headers(segment: Segment) -> Offset:
    """Where the batches of a segment end. Raises `StorageError` if they do not hold together."""
    last = _last_header(segment)
    return segment.base_offset if last is None else last.next_offset


def _last_header(segment: Segment) -> BatchHeader | None:
    position = 0
    if segment.size_bytes > _SMALL_SEGMENT_BYTES:
        position = segment.boundary_at(segment.size_bytes - 1).position
    last = None
    for at, header in segment.batches_from(position):
        if last is not None and header.base_offset != last.next_offset:
            raise corrupt(segment.path, at, misplaced(header, last.next_offset))
        last = header
    return last


def ends_at(segments: Sequence[Segment], recovery_point: Offset) -> bool:
    """Whether a log ends exactly at its recovery point: its last segment is told its end then. Of
    one that nothing was written to, it is the segment before that says so."""
    last = segments[-1]
    if not last.size_bytes:
        is_there = last.base_offset == recovery_point
        return is_there and (len(segments) == 1 or ends_before(segments[-2], last, recovery_point))
    if last.base_offset >= recovery_point:
        return False
    try:
        last.end_offset = end_by_headers(last)
    except StorageError:
        return False
    return last.end_offset == recovery_point


def ends_before(segment: Segment, following: Segment, recovery_point: Offset) -> bool:
    """Whether the last segment below the recovery point ends where its batches do, as far as a
    crash has a say in that.

    What was behind them was cut off before the next segment was begun: of a recycled file, or of a
    batch that found no room. Where a recovery point is further, that was synced.
    """
    if following.base_offset < recovery_point:
        return True  # if not, it is damage
    try:
        return end_by_headers(segment) == following.base_offset
    except StorageError:
        return False


def begins_in_epoch(segment: Segment, epochs: EpochsByOffset) -> bool:
    """Whether a segment has batches, and the first is of the epoch that the log had there."""
    try:
        _, first = next(segment.batches_from(0), (0, None))
    except StorageError:
        return False
    return first is not None and epochs.allow(first.partition_leader_epoch, first.base_offset)


def ends_in_epoch(segment: Segment, epochs: EpochsByOffset) -> bool:
    """Whether a segment has batches, and the last is of the epoch that the log had there."""
    try:
        last = _last_header(segment)
    except StorageError:
        return False
    return last is not None and epochs.allow(last.partition_leader_epoch, last.base_offset)


def check_end(segment: Segment, following: Segment) -> None:
    """A segment below the recovery point must end where the next one begins. Raises
    `StorageError`."""
    end_offset = end_by_headers(segment)
    if end_offset != following.base_offset:
        raise corrupt(
            segment.path,
            segment.size_bytes,
            f"it ends at offset {end_offset}, the next segment begins at {following.base_offset}",
        )
