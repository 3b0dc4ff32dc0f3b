"""Where the partitions of transactions are, and whether they are any more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from tidemark.broker.metadata.topic import Topic
from tidemark.broker.network.timers import Timers
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.types import Epoch, NodeId, TopicPartition

UNKNOWN_SECONDS: Final = 10.0
"""A topic that nobody here has seen being deleted is given up after that: a broker that coordinates
hears of the metadata all the time, but may be a moment behind when it begins to. So is a partition
that its topic does not have: that one was made anew, with fewer."""
_MISSING_MAX: Final = 10_000


class Topics(Protocol):
    """The topics that this broker knows."""

    def get(self, name: str) -> Topic | None: ...

    def when_deleted(self, callback: Callable[[str], None]) -> None: ...


class Places:
    """The cluster's topics, as this broker knows them."""

    def __init__(
        self,
        topics: Topics,
        leader_of: Callable[[PartitionKey], tuple[NodeId | None, Epoch]],
        timers: Timers,
    ) -> None:
        self._topics = topics
        self._leader_of = leader_of
        self._timers = timers
        # Topics, and partitions of others, that are not there, and when they will be given up.
        # Invariant: at most _MISSING_MAX.
        self._missing: dict[str | TopicPartition, float] = {}
        topics.when_deleted(self._deleted)

    def leader(self, partition: TopicPartition) -> NodeId | None:
        topic = self._topics.get(partition.topic)
        if topic is None or partition.partition >= topic.partition_count:
            return None
        return self._leader_of(PartitionKey(topic.id, partition.partition))[0]

    def is_gone(self, partition: TopicPartition) -> bool:
        topic = self._topics.get(partition.topic)
        if topic is not None and partition.partition < topic.partition_count:
            self._missing.pop(partition.topic, None)
            self._missing.pop(partition, None)
            return False
        now, missing = self._timers.now(), partition.topic if topic is None else partition
        if missing not in self._missing:
            self._note(missing, now + UNKNOWN_SECONDS)
        return now >= self._missing[missing]

    def _deleted(self, topic: str) -> None:
        self._note(topic, self._timers.now())

    def _note(self, missing: str | TopicPartition, gone_at: float) -> None:
        while len(self._missing) >= _MISSING_MAX:
            del self._missing[next(iter(self._missing))]
        self._missing[missing] = gone_at
