"""How far enough voters hold the log durably, as their leader knows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tidemark.partitions.raft.progress import Progress
from tidemark.partitions.raft.replica import NOWHERE
from tidemark.protocol.types import NodeId, Position

if TYPE_CHECKING:
    from tidemark.partitions.raft.group import Group


def held_by(group: Group, followers: Mapping[NodeId, Progress], count: int) -> Position:
    """The highest position that `count` voters hold; on each side of a joint change."""
    config = group.config
    held = _held(group, followers, config.voters, count)
    return min(held, _held(group, followers, config.outgoing, count)) if config.outgoing else held


def held_by_majority(group: Group, followers: Mapping[NodeId, Progress]) -> Position:
    """The highest position that a majority of the voters holds; of each side of a joint change."""
    config = group.config
    held = _held(group, followers, config.voters, len(config.voters) // 2 + 1)
    if config.outgoing:
        outgoing = config.outgoing
        held = min(held, _held(group, followers, outgoing, len(outgoing) // 2 + 1))
    return held


def _held(
    group: Group, followers: Mapping[NodeId, Progress], side: tuple[NodeId, ...], count: int
) -> Position:
    if count > len(side):
        return NOWHERE
    me, mine = group.node_id, NOWHERE if group.in_doubt else group.durable
    positions = [mine if node == me else followers[node].held.counted for node in side]
    positions.sort()
    return positions[-count]
