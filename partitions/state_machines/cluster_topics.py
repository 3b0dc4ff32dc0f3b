"""The topics of the cluster: by name and by id, and which names they keep others from having."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from uuid import UUID

from tidemark.partitions.state_machines.cluster_values import TopicMetadata
from tidemark.partitions.state_machines.topic_names import check_topic_name, collision_key
from tidemark.protocol.errors import ErrorCode, RequestError


class ClusterTopics:
    """A part of `ClusterState`, which changes it."""

    def __init__(self) -> None:
        self._by_name: dict[str, TopicMetadata] = {}
        self._by_id: dict[UUID, TopicMetadata] = {}
        # collision_key -> name, so that a name is compared with all others at once.
        self._taken: dict[str, str] = {}

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

    def check_free(self, name: str, topic_id: UUID) -> None:
        """Raises `RequestError` unless a new topic can have that name and that id."""
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
        self._by_name[topic.name] = self._by_id[topic.id] = topic
        self._taken[collision_key(topic.name)] = topic.name
        return topic

    def put_all(self, topics: Iterable[TopicMetadata]) -> None:
        for topic in topics:
            self.put(topic)

    def remove(self, topic: TopicMetadata) -> None:
        del self._by_name[topic.name], self._by_id[topic.id]
        del self._taken[collision_key(topic.name)]
