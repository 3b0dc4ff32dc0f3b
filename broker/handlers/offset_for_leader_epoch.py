"""OffsetForLeaderEpoch: where an epoch ended, for clients that look for truncation (L4)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tidemark.broker.network.requests import RequestContext
from tidemark.broker.steps import Steps
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


async def handle(
    node: Node, request: OffsetForLeaderEpochRequest, context: RequestContext
) -> OffsetForLeaderEpochResponse:
    steps, topics = Steps(), list[OffsetForLeaderTopicResult]()
    for topic in request.topics:
        answers = await steps.each(topic.partitions, partial(_answer, node, topic.topic))
        topics.append(OffsetForLeaderTopicResult(topic=topic.topic, partitions=answers))
    return OffsetForLeaderEpochResponse(topics=topics)


def _answer(node: Node, topic: str, asked: OffsetForLeaderPartition) -> EpochEndOffset:
    try:
        replica = node.topics.replica_here(topic, asked.partition)
        replica.check_epoch(asked.current_leader_epoch)
        replica.check_leads()
        epoch, end_offset = replica.epoch_end(Epoch(asked.leader_epoch))
    except RequestError as error:
        return EpochEndOffset(error_code=error.code, partition=asked.partition)
    return EpochEndOffset(partition=asked.partition, leader_epoch=epoch, end_offset=end_offset)
