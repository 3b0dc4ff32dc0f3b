"""For how long a replica may have lacked what the leader has committed.

A leader's heartbeats say how far a group is committed, and say nothing while that does not change.
So a replica that has all it was told of lacks at most what came since its leader was heard. One
that is behind was up to date, the last time, when it was told of what it has reached since.
"""

from __future__ import annotations

from collections.abc import Callable

from tidemark.partitions.replication.known_leaders import KnownLeader
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.types import NodeId, Position
from tidemark.protocol.values import dataclass


@dataclass(slots=True)
class _Behind:
    since: float
    """It had all of what was committed then."""
    target: Position
    """Once it has this, it has all of what was committed at `target_heard`."""
    target_heard: float
    newest: Position
    newest_heard: float


class Staleness:
    """Of all replicas of a broker. Those that have all they were told of cost nothing."""

    def __init__(self, heard: Callable[[NodeId], float | None]) -> None:
        """`heard`: when something of a broker that lives, or has lived, came last."""
        self._heard = heard
        self._behind: dict[PartitionKey, _Behind] = {}

    def told(self, key: PartitionKey, committed: Position, own: Position, now: float) -> None:
        """The leader has said how far the group is committed; the replica here is at `own`."""
        behind = self._behind.get(key)
        if behind is not None:
            behind.newest, behind.newest_heard = committed, now
        elif own < committed:
            self._behind[key] = _Behind(now, committed, now, committed, now)

    def reached(self, key: PartitionKey, own: Position) -> None:
        """The replica here has come so far."""
        behind = self._behind.get(key)
        if behind is None or own < behind.target:
            return
        if own >= behind.newest:
            del self._behind[key]
            return
        behind.since = behind.target_heard
        behind.target, behind.target_heard = behind.newest, behind.newest_heard

    def forget(self, key: PartitionKey) -> None:
        self._behind.pop(key, None)

    def seconds(
        self, key: PartitionKey, known: KnownLeader, own: Position, now: float
    ) -> float | None:
        """`None` where no leader was ever heard of; `known` is the newest."""
        heard = self._heard(known.node) if known.leads else None
        if heard is None:
            return None
        behind = self._behind.get(key)
        if behind is not None:
            return max(0.0, now - behind.since)
        # What is not here and was never told of after the leader spoke was known with its word.
        return max(0.0, now - heard) if own >= known.committed else None
