"""AlterPartitionReassignments: what is to be held by other brokers, each partition by itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tidemark.broker.handlers.change import Change
from tidemark.broker.network.requests import RequestContext
from tidemark.broker.node import Node
from tidemark.broker.reassigning.door import Asked
from tidemark.broker.steps import Steps
from tidemark.protocol.errors import RequestError
from tidemark.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopic,
    ReassignableTopicResponse,
)
from tidemark.protocol.types import NodeId


async def handle(
    node: Node, request: AlterPartitionReassignmentsRequest, _context: RequestContext
) -> AlterPartitionReassignmentsResponse:
    asked, steps = list[Asked](), Steps()
    for topic in request.topics:
        asked += _asked(topic)
        await steps.did(1 + len(topic.partitions))
    answers = iter(
        await node.reassigning.door.take(
            asked, may_change_factor=request.allow_replication_factor_change
        )
    )
    responses = list[ReassignableTopicResponse]()
    for topic in request.topics:
        partitions = await steps.each(
            topic.partitions, lambda each: _answer(each.partition_index, next(answers))
        )
        responses.append(ReassignableTopicResponse(name=topic.name, partitions=partitions))
        await steps.did(1)
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        responses=responses,
    )


def refuse(
    request: AlterPartitionReassignmentsRequest, error: RequestError
) -> AlterPartitionReassignmentsResponse:
    """The response to a request that came to nothing as a whole."""
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_code=error.code,
        error_message=error.message,
    )


def _asked(topic: ReassignableTopic) -> Iterator[Asked]:
    for each in topic.partitions:
        replicas = None if each.replicas is None else tuple(map(NodeId, each.replicas))
        yield Asked(topic.name, each.partition_index, replicas)


def _answer(partition: int, error: RequestError | None) -> ReassignablePartitionResponse:
    if error is None:
        return ReassignablePartitionResponse(partition_index=partition)
    return ReassignablePartitionResponse(
        partition_index=partition, error_code=error.code, error_message=error.message
    )


CHANGE: Final = Change(handle=handle, refuse=refuse, response=AlterPartitionReassignmentsResponse)
