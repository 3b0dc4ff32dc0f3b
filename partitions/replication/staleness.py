"""For how long a replica may have lacked what the leader has committed.

A leader's heartbeats say how far a group is committed, and say nothing while that does not change.
So a replica that has all it was told of lacks at most what came since the last heartbeat. One that
is behind was up to date, the last time, when it was told of what it has reached since. While it has
reached nothing that it was told of by this process, nobody knows when that was.
"""

from __future__ import annotations

from collections.abc import Callable

from tidemark.partitions.replication.known_leaders import KnownLeader
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.types import NodeId, Position
from tidemark.protocol.values import dataclass


@dataclass(slots=True)
class _Behind:
    since: float | None
    """It had all of what was committed then; `None`: it is not known when that was."""
    target: Position
    """Once it has this, it has all of what was committed at `target_heard`."""
    target_heard: float
    newest: Position
    newest_heard: float


class Staleness:
    """Of all replicas of a broker. Those that have all they were told of cost nothing."""

    def __init__(self, spoken: Callable[[NodeId], float | None]) -> None:
        """`spoken`: when the last heartbeat came, before the one that is read, of a broker that
        lives, or has lived."""
        self._spoken = spoken
        self._behind: dict[PartitionKey, _Behind] = {}

    def told(
        self,
        key: PartitionKey,
        before: KnownLeader,
        committed: Position,
        own: Position,
        now: float,
    ) -> None:
        """The leader has said how far the group is committed; the replica here is at `own`.

        `before` is what was known until now: who had all of that was up to date when it was said
        last, which may be long ago.
        """
        behind = self._behind.get(key)
        if behind is not None:
            behind.newest, behind.newest_heard = committed, now
        elif own < committed:
            since = self._spoken(before.node) if own >= before.committed else None
            self._behind[key] = _Behind(since, committed, now, committed, now)

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
        """`None` where that is not known, as where no leader was ever heard of; `known` is the
        newest."""
        spoken = self._spoken(known.node) if known.leads else None
        if spoken is None:
            return None
        behind = self._behind.get(key)
        if behind is not None:
            return None if behind.since is None else max(0.0, now - behind.since)
        # What is not here and was never told of after the leader spoke was known with its word.
        return max(0.0, now - spoken) if own >= known.committed else None
