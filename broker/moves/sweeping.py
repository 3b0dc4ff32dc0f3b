"""Striking the wishes whose time is over, whatever has become of the leaders."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Final

import trio

from tidemark.broker.looks import next_look
from tidemark.broker.metadata.cluster_log import ClusterLog
from tidemark.broker.node import Clock
from tidemark.partitions.state_machines.cluster import ClusterState
from tidemark.partitions.state_machines.cluster_commands import EndMoves
from tidemark.partitions.state_machines.cluster_values import MoveOutcome
from tidemark.protocol.errors import RequestError

SWEEP_SECONDS: Final = 0.5
GRACE_MS: Final = 1_000
"""The leader that carries a wish out knows why it did not come true, and says so at the deadline;
its clock need not agree with this one."""

logger = logging.getLogger(__name__)


def overdue(state: ClusterState, now_ms: int) -> Iterator[MoveOutcome]:
    """Outcomes for the wishes that nobody has said the outcome of in time."""
    for wish in state.wishes.moves.values():
        if now_ms >= wish.deadline_ms + GRACE_MS:
            yield MoveOutcome(
                topic_id=wish.topic_id,
                partition=wish.partition,
                target=wish.target,
                deadline_ms=wish.deadline_ms,
                failure="not by its deadline: nobody who leads it has said why",
            )


async def keep_swept(cluster: ClusterLog, clock: Clock) -> None:
    """Strike them while this broker leads the metadata, for ever."""
    while True:
        await trio.sleep_until(next_look(SWEEP_SECONDS))
        if cluster.leads and any(overdue(cluster.state, clock.now_ms())):
            try:
                await cluster.propose(
                    lambda state: EndMoves(
                        at_version=state.version,
                        outcomes=tuple(overdue(state, clock.now_ms())),
                    )
                )
            except RequestError as error:
                logger.debug("overdue moves of leaders are not struck yet: %s", error)
