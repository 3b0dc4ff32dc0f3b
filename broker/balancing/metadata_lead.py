"""A drained broker that leads the cluster's metadata gives that lead away, too."""

from __future__ import annotations

from collections.abc import Callable

from tidemark.partitions.balancing.eligibility import why_not_in_sync
from tidemark.partitions.balancing.settings import Settings
from tidemark.partitions.balancing.snapshot import BrokerState, Group, Snapshot
from tidemark.protocol.types import NodeId

HandOver = Callable[[NodeId], None]
"""Begins to hand the lead over. Raises `RequestError` if that cannot be."""


def next_metadata_leader(group: Group | None, snapshot: Snapshot, rules: Settings) -> NodeId | None:
    """Who should lead the metadata in place of the broker that does, if that is to lead nothing."""
    if group is None:
        return None
    brokers = {broker.node_id: broker for broker in snapshot.brokers}
    leader = brokers.get(group.leader) if group.leader is not None else None
    if leader is None or leader.state is BrokerState.ACTIVE:
        return None
    able = [
        node
        for node in group.voters
        if node != leader.node_id
        and node in brokers
        and brokers[node].is_alive
        and brokers[node].state is BrokerState.ACTIVE
        and why_not_in_sync(group, node, rules) is None
    ]
    return min(able, key=lambda node: (group.lags[node], brokers[node].up_since_ms), default=None)
