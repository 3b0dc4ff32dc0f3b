"""The balancer's moves from the wish to the outcome."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tidemark.broker.balancing import proposing
from tidemark.broker.balancing.gathering import now
from tidemark.broker.balancing.history import History
from tidemark.broker.metrics.balance_counts import BalanceMetrics
from tidemark.partitions.balancing.leaders import Cause, LeaderMove
from tidemark.partitions.state_machines.cluster_values import MoveOutcome, PartitionId

if TYPE_CHECKING:
    from tidemark.broker.node import Clock

logger = logging.getLogger(__name__)


class Beginning:
    """A part of the balancer: wishes for moves, and remembers what they are for."""

    def __init__(
        self, cluster: proposing.Cluster, history: History, clock: Clock, metrics: BalanceMetrics
    ) -> None:
        self._cluster = cluster
        self._history = history
        self._clock = clock
        self._metrics = metrics
        self._emptying: set[PartitionId] = set()

    def clear(self) -> None:
        """Another broker leads the metadata: what is begun there is not known here."""
        self._emptying.clear()

    async def begin(self, moves: Sequence[LeaderMove]) -> bool:
        """Whether any was begun. Raises `RequestError` as proposing does."""
        # Noted before they are wished: an outcome may be there before this task goes on.
        emptying = {
            at
            for move in moves
            if move.cause is Cause.EMPTY
            and (at := proposing.partition_id(move.partition, self._cluster.state)) is not None
        }
        self._emptying |= emptying
        begun = await proposing.move_leaders(self._cluster, moves, now_ms=self._clock.now_ms())
        self._emptying -= emptying - {at for _, at in begun}
        for move, _ in begun:
            self._metrics.moves[move.cause].inc()
            logger.info(
                "moving the leader of %s from broker %d to %d: %s",
                move.partition,
                move.source,
                move.target,
                move.reason,
            )
        return bool(begun)

    def ended(self, move: MoveOutcome) -> None:
        """A wish was struck, whoever has made it."""
        was_drain = move.id in self._emptying
        self._emptying.discard(move.id)
        if was_drain and move.failure is None:
            self._history.moved_off_drained(move.id, move.target)
        else:
            self._history.move_ended(move.id, now())
