"""DescribeTopicPartitions: what Metadata says of topics, a page of partitions at a time.

Topics come in the order of their names, so that a cursor says where to go on though topics have
come or gone since.
"""

from collections.abc import Iterator
from typing import Final

from tidemark.broker.metadata.partition_view import partition_view
from tidemark.broker.metadata.topic import Topic
from tidemark.broker.network.requests import RequestContext
from tidemark.broker.node import Node
from tidemark.broker.replicas.leadership import NOBODY
from tidemark.protocol.acls import ResourceType
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)

PARTITIONS_MAX: Final = 2_000
"""On one page, however many are asked for."""


def handle(
    node: Node, request: DescribeTopicPartitionsRequest, context: RequestContext
) -> DescribeTopicPartitionsResponse:
    # As with Kafka, there is no page with less than one.
    left = max(1, min(request.response_partition_limit, PARTITIONS_MAX))
    cursor = request.cursor
    if cursor is not None and cursor.partition_index < 0:
        return _page([_refused(each.name) for each in request.topics], None)
    page = []
    for name in _names(node, request):
        first = 0
        if cursor is not None and name == cursor.topic_name:
            first = cursor.partition_index
        topic = node.topics.get(name)
        if topic is None:
            page.append(_unknown(node, name))
            continue
        if left == 0:
            return _page(page, Cursor(topic_name=name, partition_index=first))
        end = min(topic.partition_count, first + left)
        page.append(_describe(node, topic, range(first, end), context))
        left -= max(0, end - first)
        if end < topic.partition_count:
            return _page(page, Cursor(topic_name=name, partition_index=end))
    return _page(page, None)


def _page(
    topics: list[DescribeTopicPartitionsResponseTopic], following: Cursor | None
) -> DescribeTopicPartitionsResponse:
    return DescribeTopicPartitionsResponse(topics=topics, next_cursor=following)


def _names(node: Node, request: DescribeTopicPartitionsRequest) -> Iterator[str]:
    """The topics from the cursor on."""
    asked = {each.name for each in request.topics} or {topic.name for topic in node.topics}
    first = "" if request.cursor is None else request.cursor.topic_name
    return (name for name in sorted(asked) if name >= first)


def _refused(
    name: str, code: ErrorCode = ErrorCode.INVALID_REQUEST
) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(error_code=code, name=name, partitions=())


def _unknown(node: Node, name: str) -> DescribeTopicPartitionsResponseTopic:
    try:
        node.topics.check_name(name)
    except RequestError as error:
        return _refused(name, error.code)
    return _refused(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def _describe(
    node: Node, topic: Topic, partitions: range, context: RequestContext
) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.is_internal,
        partitions=[_partition(node, topic, each) for each in partitions],
        topic_authorized_operations=node.access.operations(
            context.session, ResourceType.TOPIC, topic.name
        ),
    )


def _partition(
    node: Node, topic: Topic, partition: int
) -> DescribeTopicPartitionsResponsePartition:
    view = partition_view(node.brokers, topic, partition)
    has_leader = view.leader is not None
    return DescribeTopicPartitionsResponsePartition(
        error_code=ErrorCode.NONE if has_leader else ErrorCode.LEADER_NOT_AVAILABLE,
        partition_index=view.partition,
        leader_id=NOBODY if view.leader is None else view.leader,
        leader_epoch=view.epoch,
        replica_nodes=view.replicas,
        isr_nodes=view.in_sync,
        # Null by the protocol, too; but Java's `describeTopics` (4.0 on) goes through both lists.
        eligible_leader_replicas=(),
        last_known_elr=(),
        offline_replicas=view.offline,
    )
