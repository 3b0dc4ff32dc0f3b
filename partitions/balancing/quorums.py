"""What a broker's absence would cost, and which groups cannot be changed as they are."""

from __future__ import annotations

from collections.abc import Mapping

from tidemark.partitions.balancing.eligibility import No, why_in_motion, why_not_in_sync
from tidemark.partitions.balancing.refusals import Reason
from tidemark.partitions.balancing.settings import Settings
from tidemark.partitions.balancing.snapshot import Broker, BrokerState, Group
from tidemark.protocol.types import NodeId


def why_needed(
    group: Group, node: NodeId, brokers: Mapping[NodeId, Broker], settings: Settings
) -> No | None:
    """Why `group` would be without a majority if the broker `node` were stopped; None if it would
    not be. Others that are to be stopped too, or may be, count as gone."""
    if node not in group.voters:
        return None
    if len(group.voters) == 1:
        return No(Reason.QUORUM, f"its only voter is on broker {node}")
    others = [
        voter
        for voter in _in_sync(group, brokers, settings)
        if voter != node and brokers[voter].state is BrokerState.ACTIVE
    ]
    return _short_of_majority(group, others, f"without broker {node} ")


def why_unchangeable(
    group: Group, brokers: Mapping[NodeId, Broker], settings: Settings
) -> No | None:
    """Why the voters of `group` cannot be changed now: that takes a leader and a majority."""
    return why_in_motion(group) or _short_of_majority(group, _in_sync(group, brokers, settings), "")


def _in_sync(group: Group, brokers: Mapping[NodeId, Broker], settings: Settings) -> list[NodeId]:
    return [
        voter
        for voter in group.voters
        if voter in brokers
        and brokers[voter].is_alive
        and why_not_in_sync(group, voter, settings) is None
    ]


def _short_of_majority(group: Group, in_sync: list[NodeId], when: str) -> No | None:
    needed = len(group.voters) // 2 + 1
    if len(in_sync) >= needed:
        return None
    named = ", ".join(map(str, in_sync)) or "none"
    return No(
        Reason.QUORUM,
        f"{when}it has {len(in_sync)} of {len(group.voters)} voters in sync on brokers to count "
        f"on ({named}), and needs {needed}",
    )
