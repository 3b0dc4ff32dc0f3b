"""How far a broker is on its way to leading nothing, or holding nothing, and how long it takes."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from tidemark.partitions.balancing.snapshot import BrokerState, Group
from tidemark.protocol.types import NodeId
from tidemark.protocol.values import dataclass

_OF_A_LEADER: Final = 1 << 20
_OF_A_REPLICA: Final = 1 << 20
"""What a leader's move and a replica cost besides its bytes, in bytes to be copied: a guess, so
that a thousand empty ones do not seem to take no time."""


@dataclass(frozen=True, slots=True)
class _Begun:
    at_ms: int
    work: int


class Progress:
    """Of all brokers of which something is wanted. It is measured since this broker looks on."""

    def __init__(self) -> None:
        self._begun: dict[NodeId, _Begun] = {}

    def note(self, node: NodeId, work: int, now_ms: int) -> None:
        begun = self._begun.get(node)
        if begun is None or work > begun.work:
            self._begun[node] = _Begun(now_ms, work)

    def keep_only(self, nodes: Collection[NodeId]) -> None:
        for node in self._begun.keys() - set(nodes):
            del self._begun[node]

    def left_ms(self, node: NodeId, work: int, now_ms: int) -> int | None:
        """At the speed so far; None while nothing has been done."""
        if not work:
            return 0
        begun = self._begun.get(node)
        if begun is None or begun.work <= work:
            return None
        return (now_ms - begun.at_ms) * work // (begun.work - work)


def work_left(state: BrokerState, node: NodeId, groups: Iterable[Group]) -> int:
    """What is still to be done for a broker to be as it is wanted, in bytes or so."""
    work = 0
    for group in groups:
        if group.leader == node:
            work += _OF_A_LEADER
        if state is BrokerState.DECOMMISSIONING and holds(group, node):
            work += _OF_A_REPLICA + group.size_bytes
    return work


def holds(group: Group, node: NodeId) -> bool:
    """Whether it has a replica, or is to get one."""
    return node in group.replicas or node in group.voters
