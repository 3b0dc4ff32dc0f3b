"""How many partitions a topic has, of which brokers tell at different times."""

import uuid

from tidemark.client.descriptions import PartitionDescription, TopicDescription
from tidemark.client.routes import TopicRoutes
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.types import Epoch

FIRST, SECOND = uuid.UUID(int=1), uuid.UUID(int=2)


def described(topic_id: uuid.UUID, count: int) -> TopicDescription:
    partitions = tuple(
        PartitionDescription(
            partition=number,
            leader=None,
            leader_epoch=Epoch(0),
            replicas=(),
            in_sync=(),
            offline=(),
            error=ErrorCode.NONE,
        )
        for number in range(count)
    )
    return TopicDescription(name="t", topic_id=topic_id, is_internal=False, partitions=partitions)


def test_a_topic_has_fewer_partitions_only_if_it_was_made_anew() -> None:
    topic = TopicRoutes(name="t")
    counts = []
    for topic_id, count in ((FIRST, 2), (FIRST, 5), (FIRST, 2), (SECOND, 3), (SECOND, 4)):
        topic.learn(described(topic_id, count))
        counts.append(topic.count)
    assert counts == [2, 5, 5, 3, 4]
