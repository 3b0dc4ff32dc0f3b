"""What followers lack of their leader's log, put into requests as far as their windows allow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tidemark.partitions.raft.entries import Entry, EpochStart, Run
from tidemark.partitions.raft.marks import mark
from tidemark.partitions.raft.messages import AppendRequest, ResetRequest
from tidemark.partitions.raft.progress import Progress
from tidemark.protocol.types import NodeId, Position

if TYPE_CHECKING:
    from tidemark.partitions.raft.group import Group


def send_what_is_lacking(
    group: Group, followers: Mapping[NodeId, Progress], before: Position, start: EpochStart
) -> None:
    """`start` follows `before`, and is sent from here: the first time it is not in the log yet."""
    last, limits = group.shape.last, group.limits
    # Followers are mostly at the same place: read once for all of them.
    read_after: Position | None = None
    entries: tuple[Entry, ...] = ()
    for node, progress in followers.items():
        while progress.wants(last) and progress.may_send(limits.window_bytes):
            after = progress.next
            if after.offset < group.shape.start_offset:
                _send_reset(group, node, progress)
                continue
            if after == last or progress.is_to_be_asked:
                _send_entries(group, node, progress, ())
                break
            if after == before:
                _send_entries(group, node, progress, (start,))
                continue
            if after != read_after:
                bytes_max = progress.run_bytes_max(limits.append_bytes_max)
                entries = group.read(after, last, bytes_max)
                read_after = after
            if not entries:
                break
            _send_entries(group, node, progress, entries)


def _send_entries(
    group: Group, node: NodeId, progress: Progress, entries: tuple[Entry, ...]
) -> None:
    after = progress.next
    size = sum(len(entry.records) for entry in entries if isinstance(entry, Run))
    request = AppendRequest(
        group.epoch, after, entries, group.committed, *progress.held.clean_at_to_tell
    )
    progress.sent(entries[-1].position if entries else after, size)
    progress.held.told()
    group.send(node, request)


def _send_reset(group: Group, node: NodeId, progress: Progress) -> None:
    mark("follower_below_the_log_start")
    shape = group.shape
    start = shape.start
    request = ResetRequest(group.epoch, start, shape.rows_up_to(start), b"", group.committed)
    # It is answered as a request that begins and ends at the log's start.
    progress.next = start
    progress.is_probing = True
    progress.sent(start, 0)
    group.send(node, request)
