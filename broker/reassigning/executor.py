"""Carrying out the wishes for other replicas of the partitions that this broker leads.

What is to be done next, and when a wish has come true, is decided by `Reassignments`; this tells it
what is wished, has it look, and has the metadata's leader strike what has come true. Until that is
in the metadata, it is said again and again: whoever leads the group then says the same.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

import trio

from tidemark.broker.metadata.applied import Metadata
from tidemark.broker.metrics.reassignment_counts import ReassignmentMetrics
from tidemark.broker.network.turn import Turn
from tidemark.partitions.replication.reassigning import Reassignments, ReplicaWish
from tidemark.partitions.replication.throttles import Throttle
from tidemark.partitions.state_machines.cluster import ClusterState
from tidemark.partitions.state_machines.cluster_values import Reassignment
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.errors import RequestError

LOOK_SECONDS: Final = 0.05
HELD_LOOK_SECONDS: Final = 0.005
"""While writes wait for voters to change."""
SHOW_SECONDS: Final = 1.0
"""How old the figures of what is under way may be: there may be thousands to be counted. So may
what is known of other leaders, who share a broker's throttle with this one."""
_AGAIN_SECONDS: Final = 0.1


Report = Callable[[Sequence[Reassignment]], Awaitable[None]]
"""Has wishes struck, by whoever leads the metadata. Raises `RequestError`."""

FindThrottles = Callable[[ClusterState], Sequence[Throttle]]
"""What was set to limit how fast this broker's groups are copied."""


class ReassignmentExecutor:
    """`run` and `run_reports` are its tasks."""

    def __init__(
        self,
        reassignments: Reassignments,
        metadata: Metadata,
        report: Report,
        find_throttles: FindThrottles,
        *,
        turn: Turn,
        touch: Callable[[], None],
        metrics: ReassignmentMetrics,
    ) -> None:
        self._metrics = metrics
        self.reassignments = reassignments
        self._metadata = metadata
        self._report = report
        self._find_throttles = find_throttles
        self._turn = turn
        self._touch = touch
        self._told_version = -1
        self._shown_at = self._throttled_at = -SHOW_SECONDS
        self._has_done = trio.Event()

    async def run(self) -> None:
        """Look at the groups, often while anything is wished of any."""
        while True:
            state = self._metadata.state
            self._turn.run(self._look)
            if self.reassignments.done():
                self._has_done.set()
            with trio.move_on_after(self._look_seconds()):
                await self._metadata.wait_version(state.version + 1)

    def _look_seconds(self) -> float:
        if not self.reassignments:
            return float("inf")
        return HELD_LOOK_SECONDS if self.reassignments.is_changing else LOOK_SECONDS

    def _look(self) -> None:
        state, now = self._metadata.state, trio.current_time()
        is_told = state.version == self._told_version
        if not is_told:
            self._told_version = state.version
            self.reassignments.set_all(wishes_of(state), state.version)
        if self.reassignments:
            if not is_told or now >= self._throttled_at + SHOW_SECONDS:
                self.reassignments.throttles = self._find_throttles(state)
                self._throttled_at = now
            self.reassignments.look(now)
        if not self.reassignments or now >= self._shown_at + SHOW_SECONDS:
            self._metrics.show(self.reassignments)
            self._shown_at = now
        self._touch()

    async def run_reports(self) -> None:
        """Say what has come true, until it is known to be struck."""
        while True:
            await self._has_done.wait()
            self._has_done = trio.Event()
            done = [
                Reassignment(
                    topic_id=key.topic_id,
                    partition=key.partition,
                    replicas=wish.replicas,
                    at=wish.at,
                )
                for key, wish in self.reassignments.done()
            ]
            try:
                if done:
                    await self._report(done)
            except RequestError:
                await trio.sleep(_AGAIN_SECONDS)  # a later look finds what is still to be said


def wishes_of(state: ClusterState) -> Mapping[PartitionKey, ReplicaWish]:
    """Who is to vote on which partition, where that is not so yet."""
    return {
        PartitionKey(topic.id, partition): ReplicaWish(replicas, topic.wanted_at.get(partition, -1))
        for topic in state.topics.values()
        for partition, replicas in topic.wanted.items()
    }
