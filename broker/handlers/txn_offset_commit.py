"""TxnOffsetCommit: how far a group has read, to count once a transaction is committed.

The partition that the group's commits go to is one of the transaction: its leader, which is the
group's coordinator, asks about it as it does about any other. Clients of version 5 and later have
it added so (KIP-890); others have sent AddOffsetsToTxn before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from tidemark.broker.handlers.between_brokers import settled
from tidemark.broker.handlers.transaction_errors import abortable_in_version
from tidemark.broker.network.requests import RequestContext
from tidemark.partitions.state_machines.groups.requests import (
    Commit,
    CommitAnswer,
    CommittingProducer,
    OffsetToCommit,
)
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from tidemark.protocol.types import ProducerId, TopicPartition

if TYPE_CHECKING:
    from tidemark.broker.node import Node

_ABORTABLE_SINCE: Final = 4
_ADDS_SINCE: Final = 5


async def handle(
    node: Node, request: TxnOffsetCommitRequest, context: RequestContext
) -> TxnOffsetCommitResponse:
    producer = CommittingProducer(ProducerId(request.producer_id), request.producer_epoch)
    commit = Commit(
        group_id=request.group_id,
        generation=request.generation_id,
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        offsets=_known_offsets(node, request),
        producer=producer,
    )
    respond = _responder(request, commit.offsets)
    if not commit.offsets:
        # Who coordinates the transaction has nothing to say about partitions that are not there.
        return respond(CommitAnswer())
    try:
        if not request.group_id:
            raise RequestError(ErrorCode.INVALID_GROUP_ID)
        await node.verifier.confirm(
            node.coordinator.replica_of(request.group_id),
            request.transactional_id,
            producer.id,
            producer.epoch,
            adds=context.api_version >= _ADDS_SINCE,
        )
        # Nothing is awaited between the confirmation and the append.
        return await settled(node.coordinator.ask(commit, CommitAnswer, respond))
    except RequestError as error:
        code = abortable_in_version(error.code, context.api_version, since=_ABORTABLE_SINCE)
        return respond(CommitAnswer(error=code))


def _known_offsets(
    node: Node, request: TxnOffsetCommitRequest
) -> dict[TopicPartition, OffsetToCommit]:
    """Of the partitions that there are."""
    return {
        TopicPartition(topic.name, each.partition_index): OffsetToCommit(
            offset=each.committed_offset,
            leader_epoch=each.committed_leader_epoch,
            metadata=each.committed_metadata or "",
        )
        for topic in request.topics
        for each in topic.partitions
        if node.topics.has(TopicPartition(topic.name, each.partition_index))
    }


def _responder(
    request: TxnOffsetCommitRequest, known: Mapping[TopicPartition, OffsetToCommit]
) -> Callable[[CommitAnswer], TxnOffsetCommitResponse]:
    """Puts an answer into the response: every partition asked for, in the request's order."""

    def error_of(partition: TopicPartition, answer: CommitAnswer) -> ErrorCode:
        if partition not in known:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return answer.refused_partitions.get(partition, answer.error)

    def respond(answer: CommitAnswer) -> TxnOffsetCommitResponse:
        return TxnOffsetCommitResponse(
            topics=[
                TxnOffsetCommitResponseTopic(
                    name=topic.name,
                    partitions=[
                        TxnOffsetCommitResponsePartition(
                            partition_index=each.partition_index,
                            error_code=error_of(
                                TopicPartition(topic.name, each.partition_index), answer
                            ),
                        )
                        for each in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    return respond
