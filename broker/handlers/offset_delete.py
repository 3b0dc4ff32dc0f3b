"""OffsetDelete: single commits of a group go, of topics that no member reads."""

from collections.abc import Callable

from tidemark.broker.network.requests import Pending, RequestContext
from tidemark.broker.node import Node
from tidemark.partitions.state_machines.groups.requests import DeleteAnswer, DeleteOffsets
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from tidemark.protocol.types import TopicPartition


def handle(
    node: Node, request: OffsetDeleteRequest, context: RequestContext
) -> Pending[OffsetDeleteResponse]:
    known = tuple(
        TopicPartition(topic.name, partition.partition_index)
        for topic in request.topics
        for partition in topic.partitions
        if node.topics.has(TopicPartition(topic.name, partition.partition_index))
    )
    delete = DeleteOffsets(group_id=request.group_id, partitions=known)
    return node.coordinator.ask(delete, DeleteAnswer, _responder(request, frozenset(known)))


def _responder(
    request: OffsetDeleteRequest, known: frozenset[TopicPartition]
) -> Callable[[DeleteAnswer], OffsetDeleteResponse]:
    def error_of(partition: TopicPartition, answer: DeleteAnswer) -> ErrorCode:
        if partition not in known:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return answer.refused_partitions.get(partition, ErrorCode.NONE)

    def respond(answer: DeleteAnswer) -> OffsetDeleteResponse:
        if answer.error is not ErrorCode.NONE:
            return OffsetDeleteResponse(error_code=answer.error, topics=())
        return OffsetDeleteResponse(
            topics=[
                OffsetDeleteResponseTopic(
                    name=topic.name,
                    partitions=[
                        OffsetDeleteResponsePartition(
                            partition_index=asked.partition_index,
                            error_code=error_of(
                                TopicPartition(topic.name, asked.partition_index), answer
                            ),
                        )
                        for asked in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    return respond
