"""OffsetCommit: store how far a group has read; answered once that is durable (trap G7)."""

from collections.abc import Callable, Mapping

from tidemark.broker.network.requests import Answer, RequestContext
from tidemark.broker.node import Node
from tidemark.partitions.state_machines.groups.requests import (
    Commit,
    CommitAnswer,
    OffsetToCommit,
)
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from tidemark.protocol.types import TopicPartition

_MEMBER_EPOCHS_SINCE = 9


def handle(
    node: Node, request: OffsetCommitRequest, context: RequestContext
) -> Answer[OffsetCommitResponse]:
    commit = Commit(
        group_id=request.group_id,
        generation=request.generation_id_or_member_epoch,
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        knows_member_epochs=context.api_version >= _MEMBER_EPOCHS_SINCE,
        retention_ms=request.retention_time_ms,
        offsets={
            TopicPartition(topic.name, partition.partition_index): _to_commit(partition)
            for topic in request.topics
            for partition in topic.partitions
            if node.topics.has(TopicPartition(topic.name, partition.partition_index))
        },
    )
    respond = _responder(request, commit.offsets)
    try:
        return node.coordinator.ask(commit, CommitAnswer, respond)
    except RequestError as error:
        return respond(CommitAnswer(error=error.code))


def _to_commit(partition: OffsetCommitRequestPartition) -> OffsetToCommit:
    return OffsetToCommit(
        offset=partition.committed_offset,
        leader_epoch=partition.committed_leader_epoch,
        metadata=partition.committed_metadata or "",
    )


def _responder(
    request: OffsetCommitRequest, known: Mapping[TopicPartition, OffsetToCommit]
) -> Callable[[CommitAnswer], OffsetCommitResponse]:
    """Puts an answer into the response: every partition asked for, in the request's order."""

    def error_of(partition: TopicPartition, answer: CommitAnswer) -> ErrorCode:
        if partition not in known:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return answer.refused_partitions.get(partition, answer.error)

    def respond(answer: CommitAnswer) -> OffsetCommitResponse:
        return OffsetCommitResponse(
            topics=[
                OffsetCommitResponseTopic(
                    name=topic.name,
                    partitions=[
                        OffsetCommitResponsePartition(
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
