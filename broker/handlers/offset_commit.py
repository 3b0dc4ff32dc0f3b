"""OffsetCommit: store how far a group has read; answered once that is durable (trap G7)."""

from collections.abc import Callable, Mapping, Sequence

from tidemark.broker.handlers.topic_ids import unknown, with_names
from tidemark.broker.network.requests import Answer, RequestContext
from tidemark.broker.node import Node
from tidemark.partitions.state_machines.groups.requests import (
    Commit,
    CommitAnswer,
    OffsetToCommit,
)
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.offset_commit import (
    NAMES_UNTIL,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from tidemark.protocol.types import TopicPartition

_MEMBER_EPOCHS_SINCE = 9


def handle(
    node: Node, request: OffsetCommitRequest, context: RequestContext
) -> Answer[OffsetCommitResponse]:
    by_id = context.api_version > NAMES_UNTIL
    topics = with_names(node.topics, request.topics) if by_id else request.topics
    commit = Commit(
        group_id=request.group_id,
        generation=request.generation_id_or_member_epoch,
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        knows_member_epochs=context.api_version >= _MEMBER_EPOCHS_SINCE,
        retention_ms=request.retention_time_ms,
        offsets={
            TopicPartition(topic.name, partition.partition_index): _to_commit(partition)
            for topic in topics
            for partition in topic.partitions
            if node.topics.has(TopicPartition(topic.name, partition.partition_index))
        },
    )
    respond = _responder(topics, commit.offsets, by_id=by_id)
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
    topics: Sequence[OffsetCommitRequestTopic],
    known: Mapping[TopicPartition, OffsetToCommit],
    *,
    by_id: bool,
) -> Callable[[CommitAnswer], OffsetCommitResponse]:
    """Puts an answer into the response: every partition asked for, in the request's order."""

    def error_of(partition: TopicPartition, answer: CommitAnswer) -> ErrorCode:
        if partition not in known:
            return unknown(partition.topic, by_id=by_id)
        return answer.refused_partitions.get(partition, answer.error)

    def respond(answer: CommitAnswer) -> OffsetCommitResponse:
        return OffsetCommitResponse(
            topics=[
                OffsetCommitResponseTopic(
                    name=topic.name,
                    topic_id=topic.topic_id,
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
                for topic in topics
            ]
        )

    return respond
