"""Which of the other brokers live.

Whatever a broker sends says that it lives. It is dead when nothing was heard for the failure
timeout, at once when its connection says so, and when a process with a newer incarnation answers in
its place: that one knows nothing of what the old one knew.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tidemark.protocol.types import NodeId


@dataclass(slots=True)
class _Peer:
    incarnation: int = 0
    """0: not known yet."""
    heard: float = 0.0
    is_alive: bool = False


class PeerTable:
    """All other brokers that were named or heard of. What changes is returned, for the caller
    to act on."""

    def __init__(self, node_id: NodeId, *, failure_timeout_s: float) -> None:
        self._node_id = node_id
        self._failure_timeout_s = failure_timeout_s
        self._peers: dict[NodeId, _Peer] = {}

    @property
    def nodes(self) -> list[NodeId]:
        return list(self._peers)

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
        """Something came from it; whether that brings it back to life."""
        peer = self._peers.get(node)
        if peer is None:
            peer = self._peers[node] = _Peer()
        peer.heard = now
        if peer.is_alive:
            return False
        peer.is_alive = True
        return True

    def is_outdated(self, node: NodeId, incarnation: int) -> bool:
        """Whether a process of `node` that started later has been heard."""
        peer = self._peers.get(node)
        return peer is not None and incarnation < peer.incarnation

    def is_replaced(self, node: NodeId, incarnation: int) -> bool:
        """Take the incarnation down; whether it means that a process that was known is dead."""
        peer = self._peers.setdefault(node, _Peer())
        was, peer.incarnation = peer.incarnation, incarnation
        return 0 < was < incarnation

    def down(self, node: NodeId) -> bool:
        """Its process is gone, or cannot be reached; whether it was alive until now."""
        peer = self._peers.get(node)
        if peer is None or not peer.is_alive:
            return False
        peer.is_alive = False
        return True

    def silent(self, now: float) -> list[NodeId]:
        """Those that are taken for alive, and were not heard for too long."""
        limit = now - self._failure_timeout_s
        return [node for node, peer in self._peers.items() if peer.is_alive and peer.heard <= limit]

    def excuse(self, now: float, grace_s: float) -> None:
        """This process stood still itself: give those that seem silent time to be heard."""
        heard = now - self._failure_timeout_s + grace_s
        for peer in self._peers.values():
            if peer.is_alive:
                peer.heard = max(peer.heard, heard)

    def next_deadline(self) -> float:
        """When the next one may turn out to be silent."""
        heard = [peer.heard for peer in self._peers.values() if peer.is_alive]
        return min(heard) + self._failure_timeout_s if heard else float("inf")
