"""OffsetForLeaderEpoch: where an epoch ended, for clients that look for truncation (L4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemark.broker.network.requests import RequestContext
from tidemark.protocol.errors import RequestError
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
                partitions=[_answer(node, topic.topic, asked) for asked in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _answer(node: Node, topic: str, asked: OffsetForLeaderPartition) -> EpochEndOffset:
    try:
        replica = node.topics.replica_here(topic, asked.partition)
        replica.check_epoch(asked.current_leader_epoch)
        replica.check_leads()
        epoch, end_offset = replica.epoch_end(Epoch(asked.leader_epoch))
    except RequestError as error:
        return EpochEndOffset(error_code=error.code, partition=asked.partition)
    return EpochEndOffset(partition=asked.partition, leader_epoch=epoch, end_offset=end_offset)
