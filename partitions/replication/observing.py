"""The groups that this broker observes: it pulls what is committed, and votes on nothing.

It asks one of a list of parents, chosen at random, and another one when that does not answer.
Whoever is asked keeps no state about it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from tidemark.partitions.replication.peer_table import PeerTable
from tidemark.partitions.replication.timing import Timing
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.types import NodeId

_NEVER = float("inf")


@dataclass(slots=True)
class _Pulling:
    parents: Sequence[NodeId]
    parent: NodeId | None = None
    due: float = 0.0
    is_asked: bool = False
    """Whether an answer is due; then `due` is when it is given up."""
    is_hurried: bool = False
    """There was more to be had after it was asked for."""


class Pulls:
    """When to ask whom."""

    def __init__(self, timing: Timing, peers: PeerTable, rng: Random) -> None:
        self._timing = timing
        self._peers = peers
        self._rng = rng
        self._pulling: dict[PartitionKey, _Pulling] = {}

    def __contains__(self, key: PartitionKey) -> bool:
        return key in self._pulling

    def observe(self, key: PartitionKey, parents: Sequence[NodeId]) -> None:
        """Pull this group from one of these, at once for the first time."""
        pulling = self._pulling.setdefault(key, _Pulling(parents))
        pulling.parents = parents

    def remove(self, key: PartitionKey) -> None:
        self._pulling.pop(key, None)

    def hurry(self, key: PartitionKey) -> None:
        """There is more to be had."""
        pulling = self._pulling.get(key)
        if pulling is None:
            return
        if pulling.is_asked:
            pulling.is_hurried = True
        else:
            pulling.due = 0.0

    def answered(self, key: PartitionKey, source: NodeId, now: float, *, is_more: bool) -> None:
        """The parent has answered; `is_more`: ask again without waiting."""
        pulling = self._pulling.get(key)
        if pulling is not None and source == pulling.parent:
            pulling.is_asked = False
            pulling.due = now if is_more or pulling.is_hurried else now + self._timing.pull_s

    def lost(self, parent: NodeId, now: float) -> None:
        """What that one was asked, or has answered, is lost: ask it again."""
        for pulling in self._pulling.values():
            if pulling.parent == parent and pulling.is_asked:
                pulling.is_asked, pulling.due = False, now

    def take_due(self, now: float) -> list[tuple[PartitionKey, NodeId]]:
        """Whom to ask now for what."""
        taken = []
        for key, pulling in self._pulling.items():
            if pulling.due > now:
                continue
            parent = self._parent_of(pulling)
            if parent is None:
                pulling.due, pulling.is_asked = now + self._timing.pull_s, False
                continue
            pulling.parent, pulling.is_asked, pulling.is_hurried = parent, True, False
            pulling.due = now + self._timing.pull_timeout_s
            taken.append((key, parent))
        return taken

    def next_deadline(self) -> float:
        if not self._pulling:
            return _NEVER
        return min(pulling.due for pulling in self._pulling.values())

    def _parent_of(self, pulling: _Pulling) -> NodeId | None:
        alive = [node for node in pulling.parents if self._peers.is_alive(node)]
        if pulling.parent in alive and not pulling.is_asked:
            return pulling.parent
        others = [node for node in alive if node != pulling.parent]
        return self._rng.choice(others or alive) if alive else None
