"""The topics of the cluster: by name and by id, which names they keep others from having, and what
the brokers hold of them all.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeAlias
from uuid import UUID

from tidemark.partitions.state_machines.cluster_commands import (
    CreatePartitions,
    CreateTopic,
    SetTopicConfigs,
)
from tidemark.partitions.state_machines.cluster_values import Assignment, TopicMetadata
from tidemark.partitions.state_machines.placement import Load, check_assignment, check_same_factor
from tidemark.partitions.state_machines.topic_configs import TopicConfig
from tidemark.partitions.state_machines.topic_names import check_topic_name, collision_key
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.types import NodeId

PARTITIONS_MAX: Final = 100_000
"""Of one topic. A typing error in a partition count must not fill the disk with directories."""

Brokers: TypeAlias = Collection[NodeId]


def check_partition_count(partitions: int) -> None:
    """Raises `RequestError` for a number that no topic can have, before anything is placed."""
    if not 1 <= partitions <= PARTITIONS_MAX:
        raise RequestError(
            ErrorCode.INVALID_PARTITIONS,
            f"{partitions} partitions: a topic has 1 to {PARTITIONS_MAX}",
        )


class ClusterTopics:
    """A part of `ClusterState`, which changes it."""

    def __init__(self) -> None:
        self._by_name: dict[str, TopicMetadata] = {}
        self._by_id: dict[UUID, TopicMetadata] = {}
        # collision_key -> name, so that a name is compared with all others at once.
        self._taken: dict[str, str] = {}
        self.load = Load()
        """Of all partitions. Not to be changed elsewhere."""

    def copy(self) -> ClusterTopics:
        made = ClusterTopics()
        made._by_name, made._by_id = dict(self._by_name), dict(self._by_id)
        made._taken, made.load = dict(self._taken), self.load.copy()
        return made

    @property
    def by_name(self) -> Mapping[str, TopicMetadata]:
        """In the order of their creation."""
        return self._by_name

    @property
    def by_id(self) -> Mapping[UUID, TopicMetadata]:
        return self._by_id

    def existing(self, topic_id: UUID) -> TopicMetadata:
        """Raises `RequestError` UNKNOWN_TOPIC_ID if there is none."""
        topic = self._by_id.get(topic_id)
        if topic is None:
            raise RequestError(ErrorCode.UNKNOWN_TOPIC_ID, f"there is no topic with id {topic_id}")
        return topic

    # Commands: each raises `RequestError`, or returns what carries it out

    def create(self, command: CreateTopic, brokers: Brokers) -> Callable[[], TopicMetadata]:
        self._check_free(command.name, command.id)
        _check_assignments(command.assignments, brokers, before=0)
        TopicConfig.from_overrides(command.configs)
        topic = TopicMetadata(
            name=command.name,
            id=command.id,
            assignments=command.assignments,
            configs=dict(command.configs),
            created_ms=command.created_ms,
        )
        return lambda: self.put(topic)

    def set_configs(self, command: SetTopicConfigs) -> Callable[[], TopicMetadata]:
        topic = self.existing(command.id)
        TopicConfig.from_overrides(command.configs)
        return lambda: self.put(replace(topic, configs=dict(command.configs)))

    def grow(self, command: CreatePartitions, brokers: Brokers) -> Callable[[], TopicMetadata]:
        topic = self.existing(command.id)
        _check_assignments(command.assignments, brokers, before=topic.partitions)
        check_same_factor((topic.assignments[0], *command.assignments))
        grown = (*topic.assignments, *command.assignments)
        return lambda: self.put(replace(topic, assignments=grown))

    def _check_free(self, name: str, topic_id: UUID) -> None:
        check_topic_name(name)
        if name in self._by_name:
            raise RequestError(ErrorCode.TOPIC_ALREADY_EXISTS, f"there is a topic {name} already")
        other = self._taken.get(collision_key(name))
        if other is not None:
            raise RequestError(
                ErrorCode.INVALID_TOPIC_EXCEPTION,
                f'{name} and the topic {other} differ only in "." and "_", '
                "and metrics could not tell them apart: choose another name",
            )
        if topic_id in self._by_id or topic_id.int == 0:
            raise RequestError(ErrorCode.INVALID_REQUEST, f"the topic id {topic_id} is in use")

    def put(self, topic: TopicMetadata) -> TopicMetadata:
        before = self._by_id.get(topic.id)
        if before is None:
            self.load.add(topic.assignments)
        elif before.assignments is not topic.assignments:
            self.load.change(before.assignments, topic.assignments)
        self._by_name[topic.name] = self._by_id[topic.id] = topic
        self._taken[collision_key(topic.name)] = topic.name
        return topic

    def put_all(self, topics: Iterable[TopicMetadata]) -> None:
        for topic in topics:
            self.put(topic)

    def remove(self, topic: TopicMetadata) -> None:
        del self._by_name[topic.name], self._by_id[topic.id]
        del self._taken[collision_key(topic.name)]
        self.load.subtract(topic.assignments)


def _check_assignments(added: Sequence[Assignment], brokers: Brokers, *, before: int) -> None:
    check_partition_count(before + len(added))
    if not added:
        raise RequestError(ErrorCode.INVALID_PARTITIONS, "no partitions are to be added")
    for partition, assignment in enumerate(added, before):
        check_assignment(assignment, brokers, partition=partition)
    check_same_factor(added)
