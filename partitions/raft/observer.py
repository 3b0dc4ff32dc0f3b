"""Replicas that pull what is committed, without a vote, and how any replica answers them.

Whoever is asked keeps no state about who asks. What observers have is a part of what their parents
have committed, so an observer can be another one's parent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemark.partitions.raft.entries import Entry
from tidemark.partitions.raft.follower import (
    follow_each_other,
    is_beyond_committed,
    is_table_of,
)
from tidemark.partitions.raft.marks import mark
from tidemark.partitions.raft.messages import PullRequest, PullResponse, ResetRequest
from tidemark.partitions.raft.ready import Outgoing
from tidemark.protocol.types import NodeId

if TYPE_CHECKING:
    from tidemark.partitions.raft.group import Group


class Observer:
    """Asks one parent at a time; which, and when, is decided outside."""

    __slots__ = ("is_waiting",)

    def __init__(self) -> None:
        self.is_waiting = False

    def next_pull(self, group: Group, parent: NodeId) -> Outgoing:
        self.is_waiting = True
        request = PullRequest(group.shape.last, group.committed, group.limits.append_bytes_max)
        return Outgoing(parent, request)

    def take(self, group: Group, response: PullResponse) -> None:
        shape = group.shape
        if response.prev != shape.last:
            mark("stale_pull_response")
            return
        self.is_waiting = False
        if response.epoch > group.epoch:
            group.adopt(response.epoch)
        if response.reset is not None:
            self._reset(group, response.reset)
        elif response.entries:
            if not follow_each_other(shape.last, response.entries, response.epoch):
                mark("bad_entries")
                return
            group.write(response.entries)
        committed = min(response.committed, shape.last)
        if group.holds(committed):
            group.commit_to(committed)

    def persisted(self, group: Group) -> None:
        """Observers acknowledge nothing."""

    def _reset(self, group: Group, reset: ResetRequest) -> None:
        if reset.epoch > group.epoch or not is_table_of(reset):
            mark("bad_reset")
        elif not group.holds(reset.start):
            if is_beyond_committed(group, reset.start):
                group.reset(reset)
            else:
                mark("bad_reset")
        elif group.committed < group.shape.last:
            # What it had as a voter was never committed: only that has to go.
            group.truncate(group.committed)
        else:
            group.fail(reset.start)


def answer_pull(group: Group, source: NodeId, request: PullRequest) -> None:
    """Committed entries after the observer's last one; or a reset, where they do not follow it."""
    shape, last, committed = group.shape, request.last, group.committed
    reset: ResetRequest | None = None
    entries: tuple[Entry, ...] = ()
    if last >= committed:
        pass  # it is ahead of this parent, or has all of it
    elif not group.is_written:
        mark("pull_before_it_is_written")
        committed = last
    elif last.offset < shape.start_offset or not shape.contains(last):
        mark("observer_reset")
        start = shape.start
        reset = ResetRequest(group.epoch, start, shape.rows_up_to(start), b"", committed)
    else:
        bytes_max = max(1, min(request.bytes_max, group.limits.append_bytes_max))
        entries = group.read(last, committed, bytes_max)
    group.send(source, PullResponse(group.epoch, last, entries, committed, reset))
