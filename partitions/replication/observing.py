"""The groups that this broker observes: it pulls what is committed, and votes on nothing.

It asks one parent at a time: the first of those it prefers that lives and keeps up, else one of
all its parents, chosen at random; and another one when that does not answer. A parent that is long
behind what the leader has committed is left for a while. Whoever is asked keeps no state about it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from heapq import heappop, heappush
from random import Random

from tidemark.partitions.replication.peer_table import PeerTable
from tidemark.partitions.replication.timing import Timing
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.types import NodeId
from tidemark.protocol.values import dataclass

_NEVER = float("inf")


@dataclass(slots=True)
class _Pulling:
    parents: Sequence[NodeId]
    preferred: Sequence[NodeId] = ()
    is_told: bool = False
    """Whether the leader tells this broker how far the group is committed."""
    parent: NodeId | None = None
    due: float = 0.0
    is_asked: bool = False
    """Whether an answer is due; then `due` is when it is given up."""
    asked_at: float = 0.0
    is_hurried: bool = False
    """There was more to be had after it was asked for."""
    behind_since: float | None = None
    """Since when the parent has had less than the leader."""
    shunned: dict[NodeId, float] = field(default_factory=dict)
    """Parents that did not answer or were behind, and until when others go before them."""


class Pulls:
    """When to ask whom. What is not due costs nothing."""

    def __init__(self, timing: Timing, peers: PeerTable, rng: Random) -> None:
        self._timing = timing
        self._peers = peers
        self._rng = rng
        self._pulling: dict[PartitionKey, _Pulling] = {}
        # When each is due; those that are no longer so are passed over.
        self._heap: list[tuple[float, PartitionKey]] = []

    def __contains__(self, key: PartitionKey) -> bool:
        return key in self._pulling

    def __bool__(self) -> bool:
        return bool(self._pulling)

    @property
    def keys(self) -> list[PartitionKey]:
        """The groups that are observed."""
        return list(self._pulling)

    def observe(
        self,
        key: PartitionKey,
        parents: Sequence[NodeId],
        *,
        preferred: Sequence[NodeId] = (),
        is_told: bool = False,
    ) -> None:
        """Pull this group from one of these, at once for the first time.

        `is_told`: the leader tells this broker how far the group is committed, so that there is
        no need to ask while all of that is here.
        """
        pulling = self._pulling.get(key)
        if pulling is None:
            pulling = self._pulling[key] = _Pulling(parents)
            self._set_due(key, pulling, 0.0)
        pulling.parents, pulling.preferred, pulling.is_told = parents, preferred, is_told

    def remove(self, key: PartitionKey) -> None:
        self._pulling.pop(key, None)

    def parent(self, key: PartitionKey) -> NodeId | None:
        """Whom it asks now."""
        pulling = self._pulling.get(key)
        return None if pulling is None else pulling.parent

    def hurry(self, key: PartitionKey) -> None:
        """There is more to be had."""
        pulling = self._pulling.get(key)
        if pulling is None:
            return
        if pulling.is_asked:
            pulling.is_hurried = True
        else:
            soon = pulling.asked_at + self._timing.pull_gap_seconds
            self._set_due(key, pulling, min(pulling.due, soon))

    def answered(
        self,
        key: PartitionKey,
        source: NodeId,
        now: float,
        *,
        is_more: bool,
        is_behind: bool = False,
    ) -> None:
        """The parent has answered; `is_more`: ask again soon. `is_behind`: the leader has committed
        more than the parent knows of."""
        pulling = self._pulling.get(key)
        if pulling is None or source != pulling.parent:
            return
        timing = self._timing
        pulling.is_asked = False
        if not is_behind:
            pulling.behind_since = None
        elif pulling.behind_since is None:
            pulling.behind_since = now
        elif now - pulling.behind_since >= timing.pull_timeout_seconds:
            self._shun(pulling, now)
        if is_more or is_behind or pulling.is_hurried:
            # Small answers one after another would be most of the work on both sides.
            due = max(now, pulling.asked_at + timing.pull_gap_seconds)
        else:
            due = now + (timing.pull_idle_seconds if pulling.is_told else timing.pull_seconds)
        self._set_due(key, pulling, due)

    def lost(self, parent: NodeId, now: float) -> None:
        """What that one was asked, or has answered, is lost: ask it again."""
        for key, pulling in self._pulling.items():
            if pulling.parent == parent and pulling.is_asked:
                pulling.is_asked = False
                self._set_due(key, pulling, now)

    def take_due(self, now: float) -> list[tuple[PartitionKey, NodeId]]:
        """Whom to ask now for what."""
        taken = []
        while self._heap and self._heap[0][0] <= now:
            due, key = heappop(self._heap)
            pulling = self._pulling.get(key)
            if pulling is None or pulling.due != due:
                continue
            if pulling.is_asked:
                self._shun(pulling, now)
            parent = self._parent_of(pulling, now)
            if parent is None:
                pulling.is_asked = False
                self._set_due(key, pulling, now + self._timing.pull_seconds)
                continue
            if parent != pulling.parent:
                pulling.behind_since = None
            pulling.parent, pulling.is_asked, pulling.is_hurried = parent, True, False
            pulling.asked_at = now
            self._set_due(key, pulling, now + self._timing.pull_timeout_seconds)
            taken.append((key, parent))
        return taken

    def next_deadline(self) -> float:
        heap = self._heap
        while heap:
            due, key = heap[0]
            pulling = self._pulling.get(key)
            if pulling is not None and pulling.due == due:
                return due
            heappop(heap)
        return _NEVER

    def _set_due(self, key: PartitionKey, pulling: _Pulling, due: float) -> None:
        pulling.due = due
        heappush(self._heap, (due, key))

    def _shun(self, pulling: _Pulling, now: float) -> None:
        if pulling.parent is not None:
            pulling.shunned[pulling.parent] = now + self._timing.pull_shun_seconds
        pulling.behind_since = None

    def _parent_of(self, pulling: _Pulling, now: float) -> NodeId | None:
        if pulling.shunned:
            pulling.shunned = {each: end for each, end in pulling.shunned.items() if end > now}
        shunned = pulling.shunned
        for node in pulling.preferred:
            if node not in shunned and self._peers.is_alive(node):
                return node
        alive = [node for node in pulling.parents if self._peers.is_alive(node)]
        if pulling.parent in alive and pulling.parent not in shunned:
            return pulling.parent
        others = [node for node in alive if node not in shunned]
        others = others or [node for node in alive if node != pulling.parent]
        return self._rng.choice(others or alive) if alive else None
