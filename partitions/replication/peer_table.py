"""Which of the other brokers live.

A broker lives, for this one, while it is heard *and hears*: something of it came within the failure
timeout, and it has confirmed a heartbeat that was sent to it within that time. A leader that can
speak and hears nothing would be followed for ever. It is dead at once when its connection says so,
and when a process with a newer incarnation answers in its place: that one knows nothing of what the
old one knew.

Where machines have no time for their brokers, a heartbeat may be confirmed later than that, and
every time. So the timeout is a few times what confirmations have lately taken, if that is longer;
who goes on confirming hears, however long ago that was sent; and time that this process itself
did not get is nobody's silence. Brokers that are starved together keep their leaders.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tidemark.protocol.types import NodeId
from tidemark.protocol.values import dataclass

_NEVER: Final = float("-inf")
_PATIENCE: Final = 3.0
"""So many times as long as confirmations take lately may one fail to come."""
_STRETCH_MAX: Final = 8.0
"""By how much that can make the failure timeout longer."""
_REMEMBERED: Final = 0.7
"""What is left of how long the one before took."""


@dataclass(slots=True)
class _Peer:
    incarnation: int = 0
    """0: not known yet."""
    heard: float = _NEVER
    """When something of it came last."""
    spoken: float | None = None
    """When its last heartbeat did: it has told all news that it had until then."""
    confirmed: float = _NEVER
    """When the newest of the heartbeats that it has confirmed was sent to it."""
    read: float = _NEVER
    """The same, but never moved by an excuse: all that was sent to it before, it has read."""
    delay_seconds: float = 0.0
    """How long confirmations have taken lately."""
    lost: float = _NEVER
    """When it was last taken for dead: what it confirms of before says nothing."""
    is_alive: bool = False
    metadata_version: int = -1
    """Up to which it has applied the cluster's metadata, as far as it has said."""


class PeerTable:
    """All other brokers that were named or heard of. What changes is returned, for the caller
    to act on."""

    def __init__(self, node_id: NodeId, *, failure_timeout_seconds: float) -> None:
        self._node_id = node_id
        self._failure_timeout_seconds = failure_timeout_seconds
        self._peers: dict[NodeId, _Peer] = {}
        self.metadata_version = -1
        """Up to which this broker has applied the cluster's metadata: the others are told."""

    @property
    def nodes(self) -> list[NodeId]:
        return list(self._peers)

    @property
    def has_any(self) -> bool:
        return bool(self._peers)

    @property
    def alive(self) -> list[NodeId]:
        return [node for node, peer in self._peers.items() if peer.is_alive]

    def is_alive(self, node: NodeId) -> bool:
        """Whether `node` was heard within the failure timeout; this broker itself is alive."""
        peer = self._peers.get(node)
        return peer.is_alive if peer is not None else node == self._node_id

    def incarnation(self, node: NodeId) -> int:
        """0 if it is not known."""
        peer = self._peers.get(node)
        return peer.incarnation if peer is not None else 0

    def has_applied(self, node: NodeId, version: int) -> bool:
        """Whether another broker knows of the change that the metadata had *after* that version."""
        peer = self._peers.get(node)
        return peer is not None and peer.metadata_version > version

    def applied(self, node: NodeId, version: int) -> None:
        """It has said how far it has applied the metadata."""
        peer = self._peers.get(node)
        if peer is not None:
            peer.metadata_version = version

    def heard_at(self, node: NodeId) -> float | None:
        """When something of it came last; `None`: never."""
        peer = self._peers.get(node)
        return None if peer is None or peer.heard == _NEVER else peer.heard

    def spoke(self, node: NodeId, now: float) -> None:
        """A heartbeat of it was taken in, with all news that it had."""
        peer = self._peers.get(node)
        if peer is not None:
            peer.spoken = now

    def spoken_at(self, node: NodeId) -> float | None:
        """When its last heartbeat came; `None`: never."""
        peer = self._peers.get(node)
        return None if peer is None else peer.spoken

    def has_read(self, node: NodeId, since: float) -> bool:
        """Whether it has read all that was sent to it up to a moment, and this broker what it had
        to say then; this one has read its own."""
        peer = self._peers.get(node)
        return peer.read > since if peer is not None else node == self._node_id

    def has_answered(self, node: NodeId, since: float) -> bool:
        """Whether what it says to what was sent to it up to a moment is here as well, also if that
        had to be durable first: it has read something that was sent a round later."""
        peer = self._peers.get(node)
        if peer is None:
            return node == self._node_id
        return peer.read > since + peer.delay_seconds

    @property
    def delay_seconds(self) -> float:
        """How long the slowest of the living has taken lately to confirm what it was sent."""
        return max(
            (each.delay_seconds for each in self._peers.values() if each.is_alive), default=0.0
        )

    def set_nodes(self, nodes: Iterable[NodeId]) -> list[NodeId]:
        """Make these the other brokers; those that are none any more, of the ones known."""
        named = [node for node in nodes if node != self._node_id]
        gone = [node for node in self._peers if node not in named]
        for node in gone:
            del self._peers[node]
        for node in named:
            self._peers.setdefault(node, _Peer())
        return gone

    def heard(self, node: NodeId, now: float) -> bool:
        """Something came from it; whether that brings it to life."""
        peer = self._peers.get(node)
        if peer is None:
            peer = self._peers[node] = _Peer()
        peer.heard = now
        return not peer.is_alive and self._comes_alive(peer, now)

    def confirmed(self, node: NodeId, sent: float, now: float) -> bool:
        """It has heard what was sent to it then; whether that brings it to life."""
        peer = self._peers.setdefault(node, _Peer())
        # Not one that it has confirmed before: that is silence, and not lateness.
        is_new = sent > peer.read
        if is_new:
            peer.read = sent
            peer.delay_seconds = max(now - sent, _REMEMBERED * peer.delay_seconds)
        if sent >= peer.lost:
            peer.confirmed = max(peer.confirmed, now if is_new else sent)
        return not peer.is_alive and self._comes_alive(peer, now)

    def _comes_alive(self, peer: _Peer, now: float) -> bool:
        peer.is_alive = min(peer.heard, peer.confirmed) > now - self._timeout_seconds(peer)
        return peer.is_alive

    def _timeout_seconds(self, peer: _Peer) -> float:
        least = self._failure_timeout_seconds
        return min(max(least, _PATIENCE * peer.delay_seconds), _STRETCH_MAX * least)

    def is_outdated(self, node: NodeId, incarnation: int) -> bool:
        """Whether a process of `node` that started later has been heard."""
        peer = self._peers.get(node)
        return peer is not None and incarnation < peer.incarnation

    def note_incarnation(self, node: NodeId, incarnation: int) -> bool:
        """A process of that node is there; whether it means that one that was known is dead."""
        peer = self._peers.setdefault(node, _Peer())
        was, peer.incarnation = peer.incarnation, incarnation
        return 0 < was < incarnation

    def down(self, node: NodeId, now: float) -> bool:
        """Its process is gone, or cannot be reached; whether it was alive until now."""
        peer = self._peers.get(node)
        if peer is None:
            return False
        was_alive, peer.is_alive = peer.is_alive, False
        peer.lost, peer.confirmed = now, _NEVER
        return was_alive

    def silent(self, now: float) -> list[NodeId]:
        """Those that are taken for alive, and did not speak or did not hear for too long."""
        return [
            node
            for node, peer in self._peers.items()
            if peer.is_alive
            and min(peer.heard, peer.confirmed) <= now - self._timeout_seconds(peer)
        ]

    def forgive(self, late_seconds: float, now: float) -> None:
        """This process had no time for so long: it does not count as the others' silence."""
        for peer in self._peers.values():
            if peer.is_alive:
                peer.heard = min(peer.heard + late_seconds, now)
                peer.confirmed = min(peer.confirmed + late_seconds, now)

    def excuse(self, now: float, grace_seconds: float) -> None:
        """This process stood still itself: give those that seem silent time to be heard."""
        for peer in self._peers.values():
            if peer.is_alive:
                least = now - self._timeout_seconds(peer) + grace_seconds
                peer.heard = max(peer.heard, least)
                peer.confirmed = max(peer.confirmed, least)

    def next_deadline(self) -> float:
        """When the next one may turn out to be silent."""
        first = float("inf")
        for peer in self._peers.values():
            if peer.is_alive:
                first = min(first, min(peer.heard, peer.confirmed) + self._timeout_seconds(peer))
        return first
