"""Which partitions may look different than when they were last looked at.

Of ten thousand partitions a few change between two looks: those that were given another leader,
that a leader has told of, that are wished elsewhere or whose topic is another. Only these are
looked at again. Where a broker has come or gone, or nobody has listened, all are; and all once in a
while, in case that something has changed of which nothing was said.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final, Protocol
from uuid import UUID

from tidemark.broker.balancing.reports import Reports
from tidemark.broker.metadata.brokers import Brokers
from tidemark.partitions.replication.outbox import Outbox
from tidemark.partitions.state_machines.cluster import ClusterState
from tidemark.partitions.state_machines.cluster_values import (
    LeaderMove,
    PartitionId,
    TopicMetadata,
)
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.types import NodeId

_ALL_MS: Final = 300_000


class NewLeaders(Protocol):
    """Who has another leader; noted only from when somebody first asks to when he has enough."""

    def take(self) -> Collection[PartitionKey] | None:
        """The groups of which that was said since this was last asked; `None` if nobody has asked
        before, so that it may be any."""
        ...

    def stop(self) -> None: ...


class OutboxLeaders:
    """As the replicas of this broker, and the heartbeats of the others, tell of it."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox

    def take(self) -> Collection[PartitionKey] | None:
        led_anew, self._outbox.led_anew = self._outbox.led_anew, set()
        return led_anew

    def stop(self) -> None:
        self._outbox.led_anew = None


class Changes:
    """The partitions that are to be looked at again. Used on the loop's thread."""

    def __init__(
        self,
        state: Callable[[], ClusterState],
        brokers: Brokers,
        reports: Reports,
        leaders: NewLeaders,
    ) -> None:
        self._state = state
        self._brokers = brokers
        self._reports = reports
        self._leaders = leaders
        self.topics: Mapping[UUID, TopicMetadata] = {}
        """All topics, as of the last time that `note` was called."""
        self._left: dict[PartitionKey, None] = {}
        self._version = -1
        self._moves: dict[PartitionId, LeaderMove] = {}
        self._alive: list[NodeId] = []
        self._all_at_ms = 0

    def __bool__(self) -> bool:
        return bool(self._left)

    def next(self) -> PartitionKey:
        """One that is to be looked at; again and again the same one until it is `seen`."""
        return next(iter(self._left))

    def seen(self, key: PartitionKey) -> None:
        del self._left[key]

    def add(self, key: PartitionKey) -> None:
        """This one is to be looked at."""
        topic = self.topics.get(key.topic_id)
        # Others may have heard of more partitions: these are looked at once they are here.
        if topic is not None and key.partition < topic.partitions:
            self._left[key] = None

    def stop(self) -> None:
        """Nobody will look for a while: then all is to be looked at."""
        self._leaders.stop()

    def note(self, now_ms: int) -> Collection[UUID]:
        """Find out what has changed by now. The topics that are gone are returned."""
        state, led, told = self._state(), self._leaders.take(), self._reports.take_told()
        alive = [node for node in state.brokers if self._brokers.is_alive(node)]
        is_all = led is None or alive != self._alive or now_ms - self._all_at_ms > _ALL_MS
        gone: Collection[UUID] = ()
        if is_all or state.version != self._version:
            self._version, self._alive = state.version, alive
            gone = self._note_topics(state, is_all=is_all)
            self._note_moves(state)
        if is_all:
            self._all_at_ms = now_ms
        else:
            for key in (*(led or ()), *told):
                self.add(key)
        return gone

    def _note_topics(self, state: ClusterState, *, is_all: bool) -> Collection[UUID]:
        before, self.topics = self.topics, {topic.id: topic for topic in state.topics.values()}
        for topic_id, topic in self.topics.items():
            was = None if is_all else before.get(topic_id)
            if was is not topic:
                for partition in range(topic.partitions):
                    if was is None or _differs(was, topic, partition):
                        self._left[PartitionKey(topic_id, partition)] = None
        gone = before.keys() - self.topics.keys()
        if gone:
            self._left = {key: None for key in self._left if key.topic_id not in gone}
        return gone

    def _note_moves(self, state: ClusterState) -> None:
        before, self._moves = self._moves, dict(state.wishes.moves)
        for at in {*before, *self._moves}:
            if before.get(at) is not self._moves.get(at):
                self.add(PartitionKey(*at))


def _differs(was: TopicMetadata, topic: TopicMetadata, partition: int) -> bool:
    return (
        partition >= was.partitions
        or was.assignments[partition] != topic.assignments[partition]
        or was.wanted.get(partition) != topic.wanted.get(partition)
        or was.observers.get(partition) != topic.observers.get(partition)
    )
