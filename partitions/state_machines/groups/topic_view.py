"""The topics, as a coordinator that assigns partitions itself has to know them."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple, Protocol, TypeAlias
from uuid import UUID


class TopicIdPartition(NamedTuple):
    """One partition of one topic, by the topic's id: a topic made anew is another one."""

    topic_id: UUID
    partition: int


Partitions = frozenset[TopicIdPartition]

MayKnow: TypeAlias = Callable[[str], bool]
"""Whether a client may know of a topic, if there is one of that name. Those of the same client are
equal, and have the same hash."""

NO_PARTITIONS: Final[Partitions] = frozenset()


class TopicFacts(NamedTuple):
    id: UUID
    partitions: int


class TopicView(Protocol):
    """The topics as they are now."""

    def find(self, name: str) -> TopicFacts | None: ...

    def names(self) -> Iterable[str]:
        """All topics that a group may read without naming them: not the broker's own."""
        ...


class FixedTopics:
    """Topics that stay as they are."""

    def __init__(self, topics: Mapping[str, TopicFacts]) -> None:
        self.topics = topics

    def find(self, name: str) -> TopicFacts | None:
        return self.topics.get(name)

    def names(self) -> Iterable[str]:
        return self.topics


NO_TOPICS: Final[TopicView] = FixedTopics({})


def by_topic(partitions: Partitions) -> list[tuple[UUID, list[int]]]:
    """The partitions in order, by topic."""
    topics: dict[UUID, list[int]] = {}
    for topic_id, number in partitions:
        topics.setdefault(topic_id, []).append(number)
    in_order = sorted(topics, key=lambda topic_id: topic_id.bytes)
    return [(topic_id, sorted(topics[topic_id])) for topic_id in in_order]
