"""Which brokers observe a partition, where a topic's config asks for a number of observers.

Those that observe it stay as long as they may. New ones go where no replica is near: to a rack
that holds none, then to the broker that observes least.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tidemark.partitions.state_machines.cluster_values import Assignment
from tidemark.protocol.types import NodeId
from tidemark.protocol.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ObserverCandidate:
    """A broker that may be given observers."""

    node_id: NodeId
    rack: str | None
    is_alive: bool
    observed: int
    """How many partitions it observes already."""


def place_observers(
    candidates: Sequence[ObserverCandidate], *, held: Assignment, now: Assignment, wanted: int
) -> Assignment:
    """The observers of a partition that `held` hold with a vote and `now` observe: as many as
    wanted, or as there are living brokers for."""
    racks = {each.node_id: each.rack for each in candidates}
    chosen = [node for node in now if node in racks and node not in held][:wanted]
    while len(chosen) < wanted:
        taken = {*held, *chosen}
        near = Counter(racks.get(node) for node in taken)
        ranked = sorted(
            (near[each.rack], each.observed, each.node_id)
            for each in candidates
            if each.is_alive and each.node_id not in taken
        )
        if not ranked:
            break
        chosen.append(ranked[0][2])
    return tuple(chosen)
