"""ListOffsets: the start, the end, or the first record at or after a time (L1 to L3).

Who looks for a time has batches opened, and one of a megabyte may hold a million records: they are
decompressed on a thread, and gone through a little at a time, while the broker goes on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio

from tidemark.broker.network.requests import RequestContext, Session
from tidemark.broker.replicas.replica import Replica
from tidemark.broker.steps import Steps
from tidemark.broker.threads import run_in_thread
from tidemark.partitions.storage.timestamps import (
    FirstSince,
    Largest,
    Look,
    Search,
    TimestampAndOffset,
    Unreadable,
)
from tidemark.protocol.errors import CorruptBatch, ErrorCode, RequestError
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

# A millisecond or two: what else there is to do waits for no longer.
_RECORDS_AT_ONCE: Final = 1_000
LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
_NOT_AVAILABLE_SINCE: Final = 5
_SINCE: Final = {LATEST: 0, EARLIEST: 0, MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9}


async def handle(
    node: Node, request: ListOffsetsRequest, context: RequestContext
) -> ListOffsetsResponse:
    steps, topics = Steps(), list[ListOffsetsTopicResponse]()
    for topic in request.topics:
        partitions = []
        for asked in topic.partitions:
            partitions.append(await _answer(node, topic.name, asked, request, context))
            await steps.did(1)
        topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=partitions))
    return ListOffsetsResponse(topics=topics)


async def _answer(
    node: Node,
    topic: str,
    asked: ListOffsetsPartition,
    request: ListOffsetsRequest,
    context: RequestContext,
) -> ListOffsetsPartitionResponse:
    try:
        replica = node.topics.replica_here(topic, asked.partition_index)
        replica.check_epoch(asked.current_leader_epoch)
        replica.check_leads()
        if not replica.is_serving:
            # KIP-207: what was committed before is not known yet; `latest` must not go back.
            raise RequestError(_not_yet(context.api_version))
        found = await _look_up(node, replica, asked.timestamp, request.isolation_level, context)
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
        leader_epoch=epoch if context.api_version >= 4 else -1,
    )


def _not_yet(api_version: int) -> ErrorCode:
    if api_version >= _NOT_AVAILABLE_SINCE:
        return ErrorCode.OFFSET_NOT_AVAILABLE
    return ErrorCode.LEADER_NOT_AVAILABLE


async def _look_up(
    node: Node, replica: Replica, timestamp: int, isolation: int, context: RequestContext
) -> TimestampAndOffset | None:
    """What was asked for; `None` if there is no such record. Raises `RequestError`.

    To readers of committed transactions, what is not decided yet is not there.
    """
    session, api_version = context.session, context.api_version
    if timestamp >= 0:
        search = FirstSince(timestamp)
        return await _found(node, replica, search, replica.end_for(isolation), session)
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
            return await _found(node, replica, Largest(), replica.end_for(isolation), session)
        case _:
            return None  # Nothing is tiered.


async def _found(
    node: Node, replica: Replica, search: Search, end: Offset, session: Session
) -> TimestampAndOffset | None:
    """What a search below `end` comes to. Raises `RequestError`, also where the partition is not
    led here any more: what would be found then may be gone tomorrow. A client that leaves takes
    its search with it: others wait for their turn."""
    while not search.is_over:
        _check_is_there(session)
        replica.check_leads()
        look = replica.next_look(search, end)
        if look is not None:
            await _look_into(node, replica, search, look, session)
        else:
            await trio.lowlevel.checkpoint()
    return search.found


async def _look_into(
    node: Node, replica: Replica, search: Search, look: Look, session: Session
) -> None:
    async with node.searching:
        _check_is_there(session)
        try:
            records = await run_in_thread(look.open)
            while search.take(look, records, _RECORDS_AT_ONCE):
                _check_is_there(session)
                await trio.lowlevel.checkpoint()
        except Unreadable:
            search.take_whole(look)
        except CorruptBatch as error:
            raise replica.not_searchable(error) from error


def _check_is_there(session: Session) -> None:
    if session.is_over:
        raise RequestError(ErrorCode.REQUEST_TIMED_OUT)  # it goes to nobody


def _end(offset: Offset) -> TimestampAndOffset:
    return TimestampAndOffset(NO_TIMESTAMP_MS, offset)
