"""What operators wish of leaders: kept as the cluster's metadata keeps it, whoever dies.

A wish is seen, a little later, by every broker that runs, and whoever leads its group carries it
out. It is struck once that leader says what became of it, or its time is over. A leader that finds
itself deposed leaves it to the next one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

from tidemark.partitions.replication.ended_move import EndedMove, Ending
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.types import NodeId
from tidemark.testing.simulator.events import EventQueue
from tidemark.testing.simulator.groups import SimulatedGroup
from tidemark.testing.simulator.victim import Victim

_SEEN_SECONDS: Final = 0.05


class Field(Protocol):
    """The cluster."""

    queue: EventQueue

    def leader(self, group: SimulatedGroup) -> Victim | None: ...


@dataclass(frozen=True, slots=True)
class _Wish:
    group: SimulatedGroup
    target: NodeId
    until: float


class Wishes:
    """At most one for each group."""

    def __init__(self, field: Field) -> None:
        self._field = field
        self._wishes: dict[PartitionKey, _Wish] = {}

    def __contains__(self, key: PartitionKey) -> bool:
        return key in self._wishes

    def make(self, group: SimulatedGroup, target: NodeId, seconds: float) -> None:
        """Have that broker lead within so many seconds; in place of an earlier wish."""
        until = self._field.queue.now + seconds
        is_alone = not self._wishes
        self._wishes[group.key] = _Wish(group, target, until)
        if is_alone:
            self._field.queue.after(_SEEN_SECONDS, self._look)

    def ended(self, ended: EndedMove) -> None:
        """A leader says what became of a move."""
        wish = self._wishes.get(ended.key)
        if wish is not None and wish.target == ended.target and ended.ending is not Ending.LEFT:
            del self._wishes[ended.key]

    def _look(self) -> None:
        now = self._field.queue.now
        for key, wish in list(self._wishes.items()):
            leader = self._field.leader(wish.group)
            is_done = leader is not None and leader.node_id == wish.target
            if is_done or now >= wish.until:
                del self._wishes[key]
            elif leader is not None:
                leader.move_leader(key, wish.target, wish.until - now)
        if self._wishes:
            self._field.queue.after(_SEEN_SECONDS, self._look)
