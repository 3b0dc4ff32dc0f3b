"""What an operator asks for: this leader there, leaders home, a broker without leaders.

Who asks for a leader to be moved is not told to wait: a broker that has just started may lead, and
a group that has just moved may move again. What cannot be done is refused all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from random import Random
from typing import NamedTuple

from tidemark.partitions.balancing.board import Board
from tidemark.partitions.balancing.bounds import Bounds
from tidemark.partitions.balancing.eligibility import (
    No,
    why_in_motion,
    why_no_leaders,
    why_not_in_sync,
)
from tidemark.partitions.balancing.leaders import Cause, LeaderMove, leader_moves
from tidemark.partitions.balancing.obstacles import stuck
from tidemark.partitions.balancing.quorums import why_needed
from tidemark.partitions.balancing.refusals import Reason, Refusal, Refusals
from tidemark.partitions.balancing.search import Search
from tidemark.partitions.balancing.settings import Settings
from tidemark.partitions.balancing.snapshot import Broker, BrokerState, Group, Snapshot
from tidemark.protocol.types import NodeId, TopicPartition
from tidemark.protocol.values import dataclass


def why_not_move(
    snapshot: Snapshot, settings: Settings, partition: TopicPartition, target: NodeId
) -> No | None:
    """Why the leader of `partition` cannot be moved to `target`; None if it can."""
    return why_not_moves(snapshot, settings)(partition, target)


def why_not_moves(
    snapshot: Snapshot, settings: Settings
) -> Callable[[TopicPartition, NodeId], No | None]:
    """What says that of any partition and any broker: there may be thousands of wishes."""
    groups = {group.partition: group for group in snapshot.groups}
    scene = _Scene.of(snapshot, settings)

    def why_not(partition: TopicPartition, target: NodeId) -> No | None:
        group = groups.get(partition)
        if group is None:
            return No(Reason.UNKNOWN, f"there is no partition {partition}")
        if group.leader == target and not group.is_moving:
            return No(Reason.NOT_NEEDED, f"broker {target} leads it already")
        return why_in_motion(group) or scene.why_not_to(group, target)

    return why_not


class _Scene(NamedTuple):
    """The brokers at the moment that somebody asks, who is not told to wait."""

    brokers: Mapping[NodeId, Broker]
    now_ms: int
    settings: Settings

    @classmethod
    def of(cls, snapshot: Snapshot, settings: Settings) -> _Scene:
        return cls(_by_id(snapshot), snapshot.now_ms, settings.without_waiting())

    def why_not_to(self, group: Group, target: NodeId) -> No | None:
        broker = self.brokers.get(target)
        if broker is None:
            known = ", ".join(str(node) for node in sorted(self.brokers))
            return No(Reason.UNKNOWN, f"there is no broker {target}, only {known}")
        no = why_no_leaders(broker, self.now_ms, self.settings)
        return no or why_not_in_sync(group, target, self.settings)


def _by_id(snapshot: Snapshot) -> dict[NodeId, Broker]:
    return {broker.node_id: broker for broker in snapshot.brokers}


@dataclass(frozen=True, slots=True, kw_only=True)
class PreferredPlan:
    """Leaders to bring home. `refusals` are one for each partition, as each is to be answered."""

    moves: tuple[LeaderMove, ...]
    refusals: tuple[Refusal, ...]


def plan_preferred(
    snapshot: Snapshot, settings: Settings, partitions: Collection[TopicPartition] | None = None
) -> PreferredPlan:
    """Move each leader to the first of its replicas that can lead now; of all groups, or of
    `partitions`. A group whose very first replica cannot lead is refused that, and moved to the
    next one that can if that comes before its leader.
    """
    scene = _Scene.of(snapshot, settings)
    _, groups = snapshot.in_order()
    moves: list[LeaderMove] = []
    refusals: list[Refusal] = []
    asked = set(partitions or ())
    for group in groups:
        if partitions is None or group.partition in asked:
            _bring_home(group, scene, moves, refusals)
    known = {group.partition for group in groups}
    for partition in sorted(asked - known):
        no = No(Reason.UNKNOWN, f"there is no partition {partition}")
        refusals.append(_refusal(no, partition))
    return PreferredPlan(moves=tuple(moves), refusals=tuple(refusals))


def _bring_home(
    group: Group,
    scene: _Scene,
    moves: list[LeaderMove],
    refusals: list[Refusal],
) -> None:
    leader = group.leader
    if (no := why_in_motion(group)) is not None or leader is None:
        refusals.append(_refusal(no or No(Reason.NO_LEADER, ""), group.partition))
        return
    for place, node in enumerate(group.replicas):
        if node == leader:
            if place == 0:
                no = No(Reason.NOT_NEEDED, f"broker {node} leads it already")
                refusals.append(_refusal(no, group.partition))
            return
        no = scene.why_not_to(group, node)
        if no is None:
            moves.append(
                LeaderMove(
                    partition=group.partition,
                    source=leader,
                    target=node,
                    step=len(moves) + 1,
                    gain=0.0,
                    reason=f"broker {node} is its preferred leader"
                    if place == 0
                    else f"broker {node} is the first of its replicas that can lead",
                    cause=Cause.PREFERRED,
                )
            )
            return
        if place == 0:
            refusals.append(_refusal(no, group.partition, node))


def _refusal(no: No, partition: TopicPartition, target: NodeId | None = None) -> Refusal:
    return Refusal(reason=no.reason, sentence=no.sentence, partition=partition, target=target)


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainPlan:
    """How a broker comes to lead nothing. It keeps its replicas and its votes, and is the last
    resort of elections (`replication.preference`)."""

    node_id: NodeId
    moves: tuple[LeaderMove, ...]
    """All of them. The balancer begins them by and by, once the broker is marked as draining."""
    stuck: tuple[Refusal, ...]
    """Leaders that stay for now, and why."""
    refusals: tuple[Refusal, ...]
    """What stopping the broker would cost: it should not be drained while there are any."""

    @property
    def is_safe(self) -> bool:
        return not self.refusals


def _takes_over(broker: Broker) -> bool:
    return broker.is_alive and not broker.is_full and broker.state is BrokerState.ACTIVE


def plan_drain(snapshot: Snapshot, settings: Settings, node: NodeId, rng: Random) -> DrainPlan:
    """Who takes over what the broker `node` leads, and whether it may be stopped then."""
    refusals = Refusals()
    brokers = _by_id(snapshot)
    if node not in brokers:
        refusals.add(Reason.UNKNOWN, f"there is no broker {node}")
        return DrainPlan(node_id=node, moves=(), stuck=(), refusals=refusals.all())
    if not any(_takes_over(broker) for broker in snapshot.brokers if broker.node_id != node):
        refusals.add(
            Reason.TOO_FEW_BROKERS,
            f"no broker but {node} is alive and takes leaders: nobody could take over",
        )
    _, groups = snapshot.in_order()
    for group in groups:
        no = why_needed(group, node, brokers, settings)
        if no is not None:
            refusals.add(no.reason, no.sentence, partition=group.partition)
    # Only this one: what others that are drained still lead is not asked about.
    draining = [
        replace(broker, state=BrokerState.DRAINING)
        if broker.node_id == node and broker.state is BrokerState.ACTIVE
        else broker
        for broker in snapshot.brokers
    ]
    # Nobody is told to wait: brokers that have just started take over as well.
    at_once = settings.for_drains().without_bounds()
    board = Board(replace(snapshot, brokers=draining), at_once)
    for number, lead in enumerate(board.lead):
        if board.is_forced[number] and board.brokers[lead].node_id != node:
            board.is_forced[number] = False
    search = Search(board, Bounds(board), rng)
    search.empty()
    return DrainPlan(
        node_id=node,
        moves=tuple(leader_moves(board, search.steps)),
        stuck=tuple(stuck(board, search.steps)),
        refusals=refusals.all(),
    )
