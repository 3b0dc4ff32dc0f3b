"""How far the observers of a group are: as they report it, and as its leader remembers it.

Nothing depends on it but where a leader sends readers, and what people are shown; so a report that
is lost costs nothing, and what a leader remembers dies with it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from tidemark.partitions.replication.peer_messages import ObserverStanding
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.types import Epoch, NodeId, Position

_STALE_MS: Final = 1_000
"""An observer that is staler says so again and again; one that is not, once."""


class RememberedStanding(NamedTuple):
    """What an observer has said, and when."""

    committed: Position
    staleness_ms: int
    parent: NodeId
    heard: float

    def staleness_at(self, now: float, committed: Position) -> int | None:
        """In milliseconds, at a leader that has committed so much; `None` if it is not known."""
        if self.staleness_ms < 0:
            return None
        if self.committed >= committed:
            return self.staleness_ms
        return self.staleness_ms + max(0, int((now - self.heard) * 1000))


_NOBODY: Final[Mapping[NodeId, RememberedStanding]] = {}


class Standings:
    """Of the observers of groups that are led here."""

    def __init__(self) -> None:
        self._standings: dict[PartitionKey, dict[NodeId, RememberedStanding]] = {}

    def take(self, source: NodeId, standing: ObserverStanding, now: float) -> None:
        key, committed, staleness_ms, parent = standing
        remembered = RememberedStanding(committed, staleness_ms, parent, now)
        self._standings.setdefault(key, {})[source] = remembered

    def of(self, key: PartitionKey) -> Mapping[NodeId, RememberedStanding]:
        """By observer."""
        return self._standings.get(key, _NOBODY)

    def forget(self, key: PartitionKey) -> None:
        """The group is not led here any more, or not here."""
        self._standings.pop(key, None)

    def keep(self, key: PartitionKey, nodes: Collection[NodeId]) -> None:
        """Nobody but these observes the group any more."""
        for node in self.of(key).keys() - set(nodes):
            del self._standings[key][node]

    def forget_node(self, node: NodeId) -> None:
        """That process is gone, and perhaps what it held."""
        for standings in self._standings.values():
            standings.pop(node, None)


class Reports:
    """What this broker's observers have to tell the leaders of their groups."""

    def __init__(self) -> None:
        # What each leader was told last, by the group.
        self._told: dict[PartitionKey, tuple[NodeId, int, Epoch, Position]] = {}

    def note_told(
        self, leader: NodeId, incarnation: int, epoch: Epoch, standing: ObserverStanding
    ) -> bool:
        """This counts as told to that process, as the leader of that epoch, from now on; whether it
        is yet to be."""
        told = leader, incarnation, epoch, standing.committed
        if self._told.get(standing.key) == told and standing.staleness_ms <= _STALE_MS:
            return False
        self._told[standing.key] = told
        return True

    def lost(self, leader: NodeId) -> None:
        """What that one was told may not have come."""
        self._told = {key: told for key, told in self._told.items() if told[0] != leader}

    def forget(self, key: PartitionKey) -> None:
        self._told.pop(key, None)
