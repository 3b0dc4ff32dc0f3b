"""OffsetForLeaderEpoch: where an epoch ended, for clients that look for truncation (L4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemark.broker.network.requests import RequestContext
from tidemark.broker.replicas.replica import Replica
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)
from tidemark.protocol.types import Epoch

if TYPE_CHECKING:
    from tidemark.broker.node import Node


def handle(
    node: Node, request: OffsetForLeaderEpochRequest, context: RequestContext
) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[
                    _answer(node.topics.replica(topic.topic, asked.partition), asked)
                    for asked in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _answer(replica: Replica | None, asked: OffsetForLeaderPartition) -> EpochEndOffset:
    try:
        if replica is None:
            raise RequestError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        replica.check_epoch(asked.current_leader_epoch)
        epoch, end_offset = replica.epochs.end_of(Epoch(asked.leader_epoch), replica.log_end)
    except RequestError as error:
        return EpochEndOffset(error_code=error.code, partition=asked.partition)
    return EpochEndOffset(partition=asked.partition, leader_epoch=epoch, end_offset=end_offset)
