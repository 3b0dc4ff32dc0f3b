"""How much of a log learners were sent, how fast, beside which limits, and how much they lack."""

from __future__ import annotations

from typing import Final

from tidemark.partitions.raft.progress import NodeProgress
from tidemark.partitions.replication.group_replica import GroupReplica
from tidemark.protocol.types import NodeId

_RATE_S: Final = 2.0
"""The rate is a mean over so long, about."""


def lag_bytes(replica: GroupReplica, each: NodeProgress) -> int:
    """About how much of the log a follower lacks, as if all records were of one size."""
    log = replica.log
    offset = min(max(each.match.offset, log.start_offset), log.end_offset)
    records = log.end_offset - log.start_offset
    return log.size_bytes * (log.end_offset - offset) // records if records else 0


class NearLearners:
    """Learners of one group that lack little, and are sent that at once, beside all limits."""

    __slots__ = ("_let_through", "_near")

    def __init__(self) -> None:
        self._near: set[NodeId] = set()
        self._let_through: dict[NodeId, int] = {}

    def note(self, replica: GroupReplica, each: NodeProgress) -> None:
        if each.node not in self._near:
            self._near.add(each.node)
            overdrawn = -min(0, each.allowance or 0)
            self._let_through[each.node] = lag_bytes(replica, each) + overdrawn

    def forget(self, node: NodeId) -> None:
        """It lacks more, or is new."""
        self._near.discard(node)

    def take_let_through(self) -> dict[NodeId, int]:
        """How many bytes that was, of those that came to be near since this was last asked for."""
        taken, self._let_through = self._let_through, {}
        return taken


class CopyMeter:
    """Of one group, by what its core has counted since it was last looked at."""

    __slots__ = (
        "_looked_at",
        "_measured_seconds",
        "_sent",
        "copied_bytes",
        "rate",
        "remaining_bytes",
    )

    def __init__(self) -> None:
        self._sent: dict[NodeId, int] = {}
        self._looked_at: float | None = None
        self._measured_seconds = 0.0
        self.copied_bytes = 0
        """In all, to any learner."""
        self.remaining_bytes = 0
        """About so many more has the learner to be sent that the log is being copied to."""
        self.rate = 0.0
        """In bytes per second."""

    @property
    def is_untouched(self) -> bool:
        """Whether nothing has been sent."""
        return not self._sent and not self.rate

    def skip(self, now: float) -> None:
        """Nothing has been sent until now."""
        self._looked_at = now

    def look(self, replica: GroupReplica, learner: NodeId | None, now: float) -> int:
        """How many bytes were sent since the last look. `learner` is whom the log is being copied
        to, if anybody."""
        elapsed = 0.0 if self._looked_at is None else now - self._looked_at
        self._looked_at = now
        sent = 0
        for each in replica.group.progress():
            if each.is_voter:
                self._sent.pop(each.node, None)
                continue
            before = self._sent.get(each.node, 0)
            sent += each.bytes_sent - before if each.bytes_sent >= before else each.bytes_sent
            self._sent[each.node] = each.bytes_sent
            if each.node == learner:
                self.remaining_bytes = lag_bytes(replica, each)
        if learner is None:
            self.remaining_bytes, self._measured_seconds = 0, 0.0
        self.copied_bytes += sent
        if elapsed > 0:
            self._measured_seconds = min(self._measured_seconds + elapsed, _RATE_S)
            self.rate += (sent / elapsed - self.rate) * min(1.0, elapsed / self._measured_seconds)
        return sent
