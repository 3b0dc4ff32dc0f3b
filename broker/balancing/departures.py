"""Brokers that are to leave for good: their replicas move off, a few at a time, and once a broker
holds nothing and has been stopped it is forgotten.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Final, Protocol, TypeVar

from tidemark.broker.balancing import proposing
from tidemark.broker.balancing.progress import holds
from tidemark.partitions.balancing.replicas import plan_decommission
from tidemark.partitions.balancing.settings import Settings
from tidemark.partitions.balancing.snapshot import BrokerState, Snapshot
from tidemark.protocol.types import NodeId

T = TypeVar("T")

_GIVEN_UP_MS: Final = 60_000
"""Copies to a broker that has been dead for so long are made elsewhere: a restart takes less."""
REASSIGNMENTS_MAX: Final = 10
"""Partitions whose replicas move at a time because a broker is to leave."""

logger = logging.getLogger(__name__)


class InThread(Protocol):
    """Runs what takes long where it holds nobody up."""

    async def __call__(self, work: Callable[[], T], /) -> T: ...


class Departures:
    """A part of the balancer, which asks it to go on at each look."""

    def __init__(
        self, cluster: proposing.Cluster, rules: Settings, rng: Random, in_thread: InThread
    ) -> None:
        self._cluster = cluster
        self._rules = rules
        self._rng = rng
        self._in_thread = in_thread
        self._dead_since_ms: dict[NodeId, int] = {}

    def clear(self) -> None:
        """Another broker leads the metadata: nobody looks on here."""
        self._dead_since_ms.clear()

    async def go_on(self, snapshot: Snapshot) -> bool:
        """Whether anything was begun. Raises `RequestError` as proposing does."""
        self._dead_since_ms = {
            broker.node_id: self._dead_since_ms.get(broker.node_id, snapshot.now_ms)
            for broker in snapshot.brokers
            if not broker.is_alive
        }
        has_begun = False
        for broker in snapshot.brokers:
            if broker.state is BrokerState.DECOMMISSIONING:
                has_begun |= await self._move_replicas(snapshot, broker.node_id)
                await self._let_go(snapshot, broker.node_id)
        return has_begun

    async def _move_replicas(self, snapshot: Snapshot, node: NodeId) -> bool:
        given_up = [
            each
            for each, since_ms in self._dead_since_ms.items()
            if snapshot.now_ms - since_ms >= _GIVEN_UP_MS
        ]
        if given_up and await proposing.call_off_moves(self._cluster, node, given_up):
            logger.info("replicas of broker %d go elsewhere than to %s", node, given_up)
            return True
        room = REASSIGNMENTS_MAX - sum(group.is_changing for group in snapshot.groups)
        if room <= 0 or not any(node in group.replicas for group in snapshot.groups):
            return False
        made = await self._in_thread(
            partial(plan_decommission, snapshot, self._rules, node, self._rng)
        )
        begun = await proposing.move_replicas(self._cluster, made.moves[:room])
        for move in begun:
            logger.info(
                "moving a replica of %s from broker %d to %d, %d bytes: %s",
                move.partition,
                move.source,
                move.target,
                move.size_bytes,
                move.reason,
            )
        return bool(begun)

    async def _let_go(self, snapshot: Snapshot, node: NodeId) -> None:
        """Forget a broker that holds nothing any more and has been stopped."""
        broker = next(each for each in snapshot.brokers if each.node_id == node)
        if broker.is_alive or any(holds(group, node) for group in snapshot.groups):
            return
        if await proposing.forget_broker(self._cluster, node):
            logger.info("broker %d has left: it holds nothing, and was stopped", node)
