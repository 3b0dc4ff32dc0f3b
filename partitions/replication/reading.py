"""Entries of a group's log, read for others to append."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from operator import attrgetter

from tidemark.partitions.raft.entries import Entry, EpochStart, Run
from tidemark.partitions.replication.recent import RecentRuns, find
from tidemark.partitions.storage.log import Log
from tidemark.protocol.records.gaps import gap_batch, is_gap
from tidemark.protocol.records.header import HEADER_BYTES, read_header
from tidemark.protocol.types import Offset, Position

_epoch = attrgetter("epoch")


def read_entries(
    rows: Sequence[EpochStart],
    log: Log,
    recent: RecentRuns,
    after: Position,
    up_to: Position,
    *,
    bytes_max: int,
) -> tuple[Entry, ...]:
    """The entries between two positions of the log, of about `bytes_max` bytes.

    At least one, if there is one. Batches come from memory where they are kept, else as a slice
    of the log; a gap that reaches further back than `after` comes without its first part. Raises
    what `Log.read` raises.
    """
    entries: list[Entry] = []
    epoch, offset = after
    following = bisect_right(rows, epoch, key=_epoch)
    while True:
        is_last = following == len(rows) or rows[following].epoch > up_to.epoch
        end = up_to.offset if is_last else rows[following].start_offset
        while offset < end:
            if bytes_max <= 0:
                return tuple(entries)
            kept = find(recent, offset, end=end, bytes_max=bytes_max)
            run = Run(*kept) if kept is not None else None
            if run is None:
                run = _from_log(log, Position(epoch, offset), end, bytes_max, not entries)
            if run is None:
                return tuple(entries)
            entries.append(run)
            bytes_max -= len(run.records)
            offset = run.end_offset
        if is_last:
            return tuple(entries)
        entries.append(rows[following])
        epoch = rows[following].epoch
        following += 1


def _from_log(
    log: Log, at: Position, end: Offset, bytes_max: int, at_least_one: bool
) -> Run | None:
    # Clients may read from within the log's first batch on; replicas get all of it.
    offset = max(at.offset, log.start_offset)
    found = log.read(offset, bytes_max=bytes_max, end_offset=end, at_least_one=at_least_one)
    if not len(found):
        return None
    first = read_header(found.peek(HEADER_BYTES))
    if first.base_offset < at.offset and is_gap(first):
        # Compaction has joined what the other has and what it is yet to get.
        gap_end = min(first.next_offset, end)
        return Run(at.epoch, at.offset, gap_end, gap_batch(at.offset, gap_end, at.epoch))
    return Run(at.epoch, at.offset, found.end_offset, found)
