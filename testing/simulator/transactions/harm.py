"""What is done to coordinators of transactions alone: to where they keep what they decide."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from tidemark.partitions.state_machines.topic_names import TRANSACTION_STATE
from tidemark.protocol.types import NodeId
from tidemark.testing.simulator.groups import SimulatedGroup
from tidemark.testing.simulator.victim import Victim


class Field(Protocol):
    groups: Sequence[SimulatedGroup]

    @property
    def brokers(self) -> Mapping[NodeId, Victim]: ...

    def leader(self, group: SimulatedGroup) -> Victim | None: ...


def coordinated_by(field: Field, node: NodeId) -> Iterator[SimulatedGroup]:
    """The partitions of `__transaction_state` that it leads."""
    for group in field.groups:
        if group.partition.topic == TRANSACTION_STATE:
            leader = field.leader(group)
            if leader is not None and leader.node_id == node:
                yield group


def links_to_its_followers(field: Field, node: NodeId) -> list[tuple[NodeId, NodeId]]:
    """All links between a coordinator and those who are to store what it decides: it can tell
    everybody else what nobody but itself has."""
    others = {voter for group in coordinated_by(field, node) for voter in group.voters} - {node}
    return [pair for other in sorted(others) for pair in ((node, other), (other, node))]
