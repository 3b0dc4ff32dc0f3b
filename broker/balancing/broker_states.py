"""Draining brokers, having them lead again, taking their replicas away for good.

What is wanted of a broker is one word in the metadata. It is refused where it would cost a
partition its majority, on the state as it is when the word is written: of two drains that come at
once, the second one sees the first.
"""

from __future__ import annotations

import logging
from random import Random
from typing import Final

import trio

from tidemark.broker.balancing import proposing
from tidemark.broker.balancing.gathering import Gathering
from tidemark.partitions.balancing import snapshot as balancing
from tidemark.partitions.balancing.by_hand import plan_drain
from tidemark.partitions.balancing.eligibility import why_not_in_sync
from tidemark.partitions.balancing.quorums import why_needed
from tidemark.partitions.balancing.refusals import Refusal
from tidemark.partitions.balancing.replicas import plan_decommission
from tidemark.partitions.balancing.settings import Settings
from tidemark.partitions.balancing.snapshot import Group, Snapshot
from tidemark.partitions.state_machines.cluster import ClusterState
from tidemark.partitions.state_machines.cluster_brokers import no_broker
from tidemark.partitions.state_machines.cluster_commands import (
    ReassignPartitions,
    SetBrokerState,
)
from tidemark.partitions.state_machines.cluster_values import BrokerState, Reassignment
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.types import NodeId
from tidemark.protocol.values import dataclass

_PATIENCE_SECONDS: Final = 5.0
_LOOK_SECONDS: Final = 0.25

logger = logging.getLogger(__name__)

_DONE_TO = {
    BrokerState.DRAINING: "drained",
    BrokerState.DECOMMISSIONING: "decommissioned",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Consequences:
    """What follows of a state, and what it costs."""

    leaders: int = 0
    replicas: int = 0
    size_bytes: int = 0
    refusals: tuple[Refusal, ...] = ()


class Refused(RequestError):
    """It would cost too much, or cannot be."""

    def __init__(self, message: str, consequences: Consequences) -> None:
        super().__init__(ErrorCode.POLICY_VIOLATION, message)
        self.consequences = consequences


class BrokerStates:
    """Sets them. For the broker that leads the metadata."""

    def __init__(
        self, cluster: proposing.Cluster, gathering: Gathering, rules: Settings, rng: Random
    ) -> None:
        self._cluster = cluster
        self._gathering = gathering
        self._rules = rules
        self._rng = rng

    async def set(
        self, node: NodeId, state: BrokerState, *, force: bool = False, dry_run: bool = False
    ) -> Consequences:
        """Raises `Refused` with what it would cost, unless it is forced, and `RequestError` for a
        broker that is not there."""
        if node not in self._cluster.state.brokers:
            raise no_broker(node)
        snapshot = await self._gathered(
            node, state, patience_seconds=0 if force else _PATIENCE_SECONDS
        )
        found = Consequences()

        def decide(current: ClusterState) -> SetBrokerState:
            nonlocal found
            seen = self._gathering.with_states_of(snapshot, current)
            found = self._consequences(seen, node, state)
            if not force:
                _refuse(node, state, found)
            return SetBrokerState(at_version=current.version, node_id=node, state=state)

        self._cluster.state.check(decide(self._cluster.state))
        if not dry_run:
            before = self._cluster.state.wishes.broker_state(node)
            await self._cluster.propose(decide)
            logger.info("broker %d is %s now, and was %s", node, state.value, before.value)
            if before is BrokerState.DECOMMISSIONING and state is not before:
                await self._call_back_replicas(node)
        return found

    async def _gathered(
        self, node: NodeId, state: BrokerState, *, patience_seconds: float
    ) -> Snapshot:
        """The cluster; a little later if it is only that replicas are still catching up, say on a
        broker that has just been restarted."""
        snapshot = await self._gathering.gather_all()
        with trio.move_on_after(patience_seconds):
            while self._consequences(snapshot, node, state).refusals and any(
                _is_catching_up(group, snapshot, self._rules)
                for group in snapshot.groups
                if node in group.voters
            ):
                await trio.sleep(_LOOK_SECONDS)
                snapshot = await self._gathering.gather_all()
        return snapshot

    def _consequences(self, snapshot: Snapshot, node: NodeId, state: BrokerState) -> Consequences:
        match state:
            case BrokerState.ACTIVE:
                return Consequences()
            case BrokerState.DRAINING:
                drain = plan_drain(snapshot, self._rules, node, self._rng)
                of_metadata = why_metadata_need(
                    self._gathering.metadata_group(), node, snapshot, self._rules
                )
                return Consequences(
                    leaders=len(drain.moves), refusals=(*drain.refusals, *of_metadata)
                )
            case BrokerState.DECOMMISSIONING:
                leaving = plan_decommission(snapshot, self._rules, node, self._rng)
                return Consequences(
                    leaders=sum(group.leader == node for group in snapshot.groups),
                    replicas=len(leaving.moves),
                    size_bytes=leaving.size_bytes,
                    refusals=leaving.refusals,
                )

    async def _call_back_replicas(self, node: NodeId) -> None:
        """Those that are on their way off a broker that is to stay after all."""

        def decide(state: ClusterState) -> ReassignPartitions:
            return ReassignPartitions(
                at_version=state.version,
                reassignments=tuple(
                    Reassignment(topic_id=topic.id, partition=partition, replicas=None)
                    for topic in state.topics.values()
                    for partition, wanted in topic.wanted.items()
                    if node in topic.assignments[partition] and node not in wanted
                ),
            )

        if decide(self._cluster.state).reassignments:
            await self._cluster.propose(decide)


def _is_catching_up(group: Group, snapshot: Snapshot, rules: Settings) -> bool:
    """Whether a voter on a broker to count on is not in sync yet."""
    return any(
        broker.node_id in group.voters
        and broker.is_alive
        and broker.state is balancing.BrokerState.ACTIVE
        and why_not_in_sync(group, broker.node_id, rules) is not None
        for broker in snapshot.brokers
    )


def why_metadata_need(
    group: Group | None, node: NodeId, snapshot: Snapshot, rules: Settings
) -> list[Refusal]:
    """Why the cluster's own metadata would be without a majority without that broker."""
    if group is None or len(snapshot.brokers) == 1:
        return []
    brokers = {broker.node_id: broker for broker in snapshot.brokers}
    no = why_needed(group, node, brokers, rules)
    if no is None:
        return []
    return [Refusal(reason=no.reason, sentence=no.sentence, partition=group.partition)]


def _refuse(node: NodeId, state: BrokerState, found: Consequences) -> None:
    if not found.refusals:
        return
    why = "; ".join(_sentence(refusal) for refusal in found.refusals)
    raise Refused(f"broker {node} cannot be {_DONE_TO[state]}: {why}", found)


def _sentence(refusal: Refusal) -> str:
    if refusal.partition is None:
        return refusal.sentence
    others = f" and {refusal.groups - 1} more" if refusal.groups > 1 else ""
    return f"{refusal.partition}{others}: {refusal.sentence}"
