"""Since when brokers are up, and when a partition's leader last moved: what only who watched knows.

Times are milliseconds of this process's own clock.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple
from uuid import UUID

from tidemark.broker.balancing.overgrowth import Overgrowth
from tidemark.partitions.state_machines.cluster_values import PartitionId
from tidemark.protocol.types import NodeId


class _Seen(NamedTuple):
    is_alive: bool
    incarnation: int
    since_ms: int


class History:
    """Kept by every broker about the others, lest a new leader of the metadata know nothing."""

    def __init__(self) -> None:
        self._brokers: dict[NodeId, _Seen] = {}
        self._moved: dict[PartitionId, int] = {}
        self._leaders: dict[PartitionId, NodeId] = {}
        self._overgrowth = Overgrowth()

    # Brokers

    def saw_broker(self, node: NodeId, *, is_alive: bool, incarnation: int, now_ms: int) -> None:
        """Whoever was dead, or is another process, is up since now."""
        seen = self._brokers.get(node)
        if seen is None or (seen.is_alive, seen.incarnation) != (is_alive, incarnation):
            self._brokers[node] = _Seen(is_alive, incarnation, now_ms)

    def forget_brokers(self, known: Collection[NodeId]) -> None:
        for node in self._brokers.keys() - set(known):
            del self._brokers[node]

    def up_since_ms(self, node: NodeId) -> int | None:
        """None if it is not up, as far as was seen."""
        seen = self._brokers.get(node)
        return seen.since_ms if seen is not None and seen.is_alive else None

    # Leaders

    def saw_leader(self, partition: PartitionId, leader: NodeId | None, now_ms: int) -> None:
        """A first sight is no change, and neither is an election that is under way."""
        if leader is None:
            return
        if self._leaders.get(partition, leader) != leader:
            self._moved[partition] = now_ms
        self._leaders[partition] = leader

    def move_ended(self, partition: PartitionId, now_ms: int) -> None:
        """A wish was struck, whatever became of it."""
        self._moved[partition] = now_ms

    def moved_off_drained(self, partition: PartitionId, leader: NodeId) -> None:
        """It was moved off a drained broker: it may go home as soon as that one is resumed."""
        self._leaders[partition] = leader
        self._moved.pop(partition, None)

    def moved_ms(self, partition: PartitionId) -> int | None:
        return self._moved.get(partition)

    def stop_watching(self) -> None:
        """Leaders will not be seen for a while: what is seen then says nothing about changes."""
        self._leaders.clear()

    def forget_topics(self, topics: Collection[UUID]) -> None:
        """They were deleted."""
        for of_partitions in (self._moved, self._leaders):
            for partition in [each for each in of_partitions if each.topic_id in topics]:
                del of_partitions[partition]

    def forget_gone(self, is_there: Callable[[UUID], bool]) -> None:
        """Forget all topics but those that are there. Moves are heard of everywhere, deletions only
        where somebody plans. To be called again and again (`Overgrowth`)."""
        if not self._overgrowth.is_due(len(self._moved) + len(self._leaders)):
            return
        for of_partitions in (self._moved, self._leaders):
            for partition in [each for each in of_partitions if not is_there(each.topic_id)]:
                del of_partitions[partition]
        self._overgrowth.kept(len(self._moved) + len(self._leaders))
