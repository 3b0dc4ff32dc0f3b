"""What is told of each broker: what it leads and holds, what is wanted of it, how far that is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace
from random import Random

from tidemark.broker.balancing.broker_states import why_metadata_need
from tidemark.broker.balancing.progress import Progress, holds, work_left
from tidemark.partitions.balancing.by_hand import plan_drain
from tidemark.partitions.balancing.refusals import Refusal
from tidemark.partitions.balancing.replicas import plan_decommission
from tidemark.partitions.balancing.settings import Settings
from tidemark.partitions.balancing.snapshot import Broker, BrokerState, Group, Snapshot
from tidemark.protocol.types import NodeId
from tidemark.protocol.values import dataclass

_STUCK_MAX = 10


@dataclass(slots=True, kw_only=True)
class Description:
    """One broker."""

    broker: Broker
    is_controller: bool
    leaders: int = 0
    replicas: int = 0
    size_bytes: int = 0
    bytes_in_per_second: float = 0.0
    bytes_out_per_second: float = 0.0
    leaders_coming: int = 0
    leaders_going: int = 0
    replicas_going: int = 0
    left_ms: int | None = None
    stuck: list[str] = field(default_factory=list)
    needed: list[str] = field(default_factory=list)
    """Why the cluster's metadata would be without a majority if it left now."""

    @property
    def state(self) -> str:
        match self.broker.state:
            case BrokerState.ACTIVE:
                return "active"
            case BrokerState.DECOMMISSIONING:
                return "decommissioning" if self.replicas or self.needed else "decommissioned"
            case _:
                return "draining" if self.leaders or self.is_controller else "drained"

    def add(self, group: Group) -> None:
        node = self.broker.node_id
        if holds(group, node):
            self.replicas += 1
            self.size_bytes += group.size_bytes
            self.replicas_going += node not in group.replicas
        if group.leader == node:
            self.leaders += 1
            self.bytes_in_per_second += group.bytes_in_per_second
            self.bytes_out_per_second += group.bytes_out_per_second
            self.leaders_going += group.moving_to is not None
        self.leaders_coming += group.moving_to == node


def describe(
    snapshot: Snapshot,
    controller: NodeId,
    rules: Settings,
    progress: Progress,
    metadata: Group | None,
) -> list[Description]:
    """All brokers, by number. `metadata` is their own group. May take long: for a thread."""
    described = {
        broker.node_id: Description(broker=broker, is_controller=broker.node_id == controller)
        for broker in sorted(snapshot.brokers, key=lambda broker: broker.node_id)
    }
    for group in snapshot.groups:
        for node in {*group.replicas, *group.voters, group.leader, group.moving_to}:
            if node in described:
                described[node].add(group)
    for node, each in described.items():
        if each.broker.state is not BrokerState.ACTIVE:
            work = work_left(each.broker.state, node, snapshot.groups)
            each.left_ms = progress.left_ms(node, work, snapshot.now_ms)
            if each.broker.state is BrokerState.DECOMMISSIONING:
                each.needed = _why_needed(metadata, node, snapshot, rules)
            each.stuck = [*each.needed, *_stuck(each, snapshot, rules)][:_STUCK_MAX]
    return list(described.values())


def _why_needed(
    metadata: Group | None, node: NodeId, snapshot: Snapshot, rules: Settings
) -> list[str]:
    """Its vote goes to another broker soon, or once there is one; then it may be stopped. Of
    several that are to leave and have to wait for each other, the first by number goes first."""
    brokers = [
        replace(each, state=BrokerState.ACTIVE)
        if each.state is BrokerState.DECOMMISSIONING and each.node_id > node
        else each
        for each in snapshot.brokers
    ]
    needed = why_metadata_need(metadata, node, replace(snapshot, brokers=brokers), rules)
    return [f"{refusal.partition}: {refusal.sentence}" for refusal in needed]


def _stuck(one: Description, snapshot: Snapshot, rules: Settings) -> Iterator[str]:
    node, rng = one.broker.node_id, Random(0)
    refusals: list[Refusal] = []
    if one.leaders:
        refusals += plan_drain(snapshot, rules, node, rng).stuck
    if one.broker.state is BrokerState.DECOMMISSIONING and one.replicas > one.replicas_going:
        refusals += plan_decommission(snapshot, rules, node, rng).refusals
    for refusal in refusals:
        where = "" if refusal.partition is None else f"{refusal.partition}: "
        more = f" ({refusal.groups} partitions)" if refusal.groups > 1 else ""
        yield f"{where}{refusal.sentence}{more}"
