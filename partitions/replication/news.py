"""When heartbeats go out, and to whom: at their interval, and sooner where something presses.

Where nobody has anything new to say they go out less often: all that they tell is that this broker
lives, and hears. One that would be due soon goes out as an answer to another broker's then: so all
of them fall into step, and none has to be woken for its own.

How far groups are committed is mostly said with their next entries, and then not in a heartbeat.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final

from tidemark.partitions.replication.heartbeats import Heartbeats
from tidemark.partitions.replication.outbox import Outbox
from tidemark.partitions.replication.peer_messages import GroupBeat, Heartbeat
from tidemark.partitions.replication.peer_table import PeerTable
from tidemark.partitions.replication.timing import Timing
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.types import NodeId

if TYPE_CHECKING:
    from tidemark.partitions.replication.group_replica import GroupReplica

_NEVER: Final = float("inf")
_NEVER_YET: Final = float("-inf")


class News:
    """What this broker has to tell the others of itself and of the groups that it leads.

    News that press go out at the end of a turn, but no more often than every `news_gap_seconds`:
    what a thousand elections bring in ten milliseconds is a few frames.
    """

    def __init__(
        self,
        incarnation: int,
        timing: Timing,
        peers: PeerTable,
        outbox: Outbox,
        beat_of: Callable[[PartitionKey], GroupBeat | None],
        audience: Callable[[GroupReplica], Sequence[NodeId]],
    ) -> None:
        """`audience`: who wants to know how far a group is committed."""
        self._heartbeats = Heartbeats(incarnation, beat_of)
        self._timing = timing
        self._peers = peers
        self._outbox = outbox
        self._audience = audience
        self._committed: dict[GroupReplica, None] = {}
        """Of which nobody has been told how far they are committed now."""
        self._last = _NEVER_YET
        self._is_calm = False
        """Whether no other broker has something to hear, or waits to hear that it was heard."""
        self._next_to_dead = 0.0
        self._sent = 0.0
        self._is_pressing = False
        self._is_answer_due = False
        """Whether the next heartbeats go out in this turn, in step with another broker's."""

    def add(self, key: PartitionKey, nodes: Iterable[NodeId], *, is_pressing: bool = False) -> None:
        """There is something new about a group that these have to know."""
        self._heartbeats.add_news(key, nodes)
        self._is_calm = False
        self._is_pressing |= is_pressing

    def committed(self, replica: GroupReplica) -> None:
        """More of a group that is led here is committed."""
        self._committed[replica] = None
        self._is_calm = False

    def told(self, replica: GroupReplica, to: Sequence[NodeId]) -> None:
        """Entries are on their way to these, which say how far the group is committed now; what is
        lost of them is sent again.

        Who lacks something of that has to hear of it at once: it would else take itself for fresh.
        """
        if replica in self._committed:
            group = replica.group
            told = {*to}.intersection(group.holding(group.committed))
            if told.issuperset(self._audience(replica)):
                del self._committed[replica]

    def take_in(self, source: NodeId, heartbeat: Heartbeat, now: float) -> float | None:
        """See `Heartbeats.take_in`."""
        if heartbeat.groups:
            self._is_calm = False
        # Not what is overdue: that is for `tick`, which asks why.
        elif self._is_calm and self._last + self._interval_seconds / 2 <= now < self._next:
            self._is_answer_due = True
        return self._heartbeats.take_in(source, heartbeat)

    def confirm_soon(self, node: NodeId) -> None:
        """It waits to hear that its last heartbeat was read."""
        self._heartbeats.hurry(node)
        self._is_pressing = True

    def restarted(self, node: NodeId) -> None:
        self._heartbeats.restarted(node)

    def forget(self, node: NodeId) -> None:
        """It is no broker of the cluster any more."""
        self._heartbeats.remove(node)

    def begin(self) -> None:
        """There are other brokers from now on."""
        self._last = _NEVER_YET

    def hasten(self) -> None:
        """Somebody waits to hear what the others have read."""
        self._is_calm = False

    def late_seconds(self, now: float) -> float:
        """By how much the next heartbeat is overdue, if there has been any."""
        return now - self._next if self._last > _NEVER_YET else 0.0

    def tick(self, now: float) -> None:
        """Send what is due at its interval."""
        if now >= self._next:
            self._send_to_all(now)

    def _send_to_all(self, now: float) -> None:
        self._last = now
        committed, self._committed = self._committed, {}
        for replica in committed:
            self._heartbeats.add_news(replica.key, self._audience(replica))
        self._is_calm = not any(map(self._heartbeats.has_news, self._peers.alive))
        # A peer that is taken for dead must hear something, or two that both think so of each
        # other will never speak again; but all the news again and again would be too much.
        to_all = now >= self._next_to_dead
        if to_all:
            self._next_to_dead = now + self._timing.failure_timeout_seconds
        for node in self._peers.nodes:
            if to_all or (self._peers.is_alive(node) and not self._is_to_wait(node, now)):
                self._send(node, now)
        self._is_answer_due = False

    def send_pressing(self, now: float) -> None:
        """Send what should not wait for the interval."""
        if self._is_answer_due:
            self._send_to_all(now)
        if not self._is_pressing or now < self._sent + self._timing.news_gap_seconds:
            return
        self._is_pressing, self._sent = False, now
        for node in self._peers.nodes:
            if self._heartbeats.is_hurried(node) or (
                self._peers.is_alive(node)
                and self._heartbeats.has_unsent_news(node)
                and not self._is_to_wait(node, now)
            ):
                self._send(node, now)

    def next_deadline(self) -> float:
        first = self._next if self._peers.has_any else _NEVER
        if self._is_pressing:
            first = min(first, self._sent + self._timing.news_gap_seconds)
        return first

    @property
    def _next(self) -> float:
        return self._last + self._interval_seconds

    @property
    def _interval_seconds(self) -> float:
        timing = self._timing
        return timing.calm_heartbeat_seconds if self._is_calm else timing.heartbeat_seconds

    def _is_to_wait(self, node: NodeId, now: float) -> bool:
        return self._heartbeats.is_to_wait(node, now, self._timing.failure_timeout_seconds / 4)

    def _send(self, node: NodeId, now: float) -> None:
        version = self._peers.metadata_version
        self._outbox.send(node, self._heartbeats.make(node, now, metadata_version=version))
