"""DeleteRecords: move the start of partitions, whatever their retention says.

As in Kafka, not of topics that are only compacted: the latest record of a key, which they promise
to keep, would go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemark.broker.network.requests import RequestContext
from tidemark.broker.replicas.admission import check_not_the_brokers_own
from tidemark.broker.steps import Steps
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from tidemark.protocol.types import NO_OFFSET, Offset

if TYPE_CHECKING:
    from tidemark.broker.node import Node


async def handle(
    node: Node, request: DeleteRecordsRequest, context: RequestContext
) -> DeleteRecordsResponse:
    steps, topics = Steps(), list[DeleteRecordsTopicResult]()
    for topic in request.topics:
        partitions = list[DeleteRecordsPartitionResult]()
        for partition in topic.partitions:
            partitions.append(await _delete(node, topic.name, partition))
            await steps.did(1)
        topics.append(DeleteRecordsTopicResult(name=topic.name, partitions=partitions))
    return DeleteRecordsResponse(topics=topics)


async def _delete(
    node: Node, topic: str, asked: DeleteRecordsPartition
) -> DeleteRecordsPartitionResult:
    try:
        check_not_the_brokers_own(topic)
        replica = node.topics.replica_here(topic, asked.partition_index)
        if not replica.config.deletes_old_segments:
            raise RequestError(ErrorCode.POLICY_VIOLATION, f"{topic} keeps the latest of each key")
        log_start = await replica.delete_records(Offset(asked.offset))
    except RequestError as error:
        return DeleteRecordsPartitionResult(
            partition_index=asked.partition_index, low_watermark=NO_OFFSET, error_code=error.code
        )
    return DeleteRecordsPartitionResult(
        partition_index=asked.partition_index, low_watermark=log_start
    )
