"""The topics, as the groups' coordinator sees them."""

from collections.abc import Iterator

from tidemark.broker.metadata.topics import Topics
from tidemark.partitions.state_machines.groups.topic_view import TopicFacts
from tidemark.partitions.state_machines.topic_names import INTERNAL_TOPICS


class TopicsSeen:
    """A `TopicView` of the broker's topics, as they are at each moment."""

    def __init__(self, topics: Topics) -> None:
        self._topics = topics

    def find(self, name: str) -> TopicFacts | None:
        topic = self._topics.get(name)
        return None if topic is None else TopicFacts(topic.id, topic.partition_count)

    def names(self) -> Iterator[str]:
        return (topic.name for topic in self._topics if topic.name not in INTERNAL_TOPICS)
