"""ListOffsets: the start, the end, or the first record at or after a time (L1 to L3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tidemark.broker.network.requests import RequestContext
from tidemark.broker.replicas.replica import Replica
from tidemark.partitions.storage.timestamps import TimestampAndOffset
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from tidemark.protocol.types import NO_TIMESTAMP_MS, Offset

if TYPE_CHECKING:
    from tidemark.broker.node import Node

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
_NOT_AVAILABLE_SINCE: Final = 5
_SINCE: Final = {LATEST: 0, EARLIEST: 0, MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9}


def handle(node: Node, request: ListOffsetsRequest, context: RequestContext) -> ListOffsetsResponse:
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    _answer(node, topic.name, asked, request.isolation_level, context.api_version)
                    for asked in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _answer(
    node: Node, topic: str, asked: ListOffsetsPartition, isolation: int, api_version: int
) -> ListOffsetsPartitionResponse:
    try:
        replica = node.topics.replica_here(topic, asked.partition_index)
        replica.check_epoch(asked.current_leader_epoch)
        replica.check_leads()
        if not replica.is_serving:
            # KIP-207: what was committed before is not known yet; `latest` must not go back.
            raise RequestError(_not_yet(api_version))
        found = _look_up(replica, asked.timestamp, isolation, api_version)
        # An empty end has no record; its epoch is the one that the next record will carry.
        epoch = replica.epoch_at(found.offset) if found is not None else -1
    except RequestError as error:
        return ListOffsetsPartitionResponse(
            partition_index=asked.partition_index, error_code=error.code
        )
    if found is None:
        return ListOffsetsPartitionResponse(partition_index=asked.partition_index)
    return ListOffsetsPartitionResponse(
        partition_index=asked.partition_index,
        timestamp=found.timestamp_ms,
        offset=found.offset,
        leader_epoch=epoch if api_version >= 4 else -1,
    )


def _not_yet(api_version: int) -> ErrorCode:
    if api_version >= _NOT_AVAILABLE_SINCE:
        return ErrorCode.OFFSET_NOT_AVAILABLE
    return ErrorCode.LEADER_NOT_AVAILABLE


def _look_up(
    replica: Replica, timestamp: int, isolation: int, api_version: int
) -> TimestampAndOffset | None:
    """What was asked for; `None` if there is no such record. Raises `RequestError`.

    To readers of committed transactions, what is not decided yet is not there.
    """
    if timestamp >= 0:
        return replica.find_timestamp(timestamp, isolation=isolation)
    if api_version < _SINCE.get(timestamp, api_version + 1):
        raise RequestError(
            ErrorCode.UNSUPPORTED_VERSION, f"ListOffsets {api_version} knows no {timestamp}"
        )
    match timestamp:
        case -1:
            return _end(replica.end_for(isolation))
        case -2 | -4:
            return _end(replica.log_start)
        case -3:
            return replica.max_timestamp(isolation=isolation)
        case _:
            return None  # Nothing is tiered.


def _end(offset: Offset) -> TimestampAndOffset:
    return TimestampAndOffset(NO_TIMESTAMP_MS, offset)
