"""ListPartitionReassignments: what is being moved, of all partitions or of those asked about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from tidemark.broker.handlers.change import Change
from tidemark.broker.metadata.topic import Topic
from tidemark.broker.network.requests import RequestContext
from tidemark.broker.node import Node
from tidemark.broker.steps import distinct
from tidemark.protocol.errors import RequestError
from tidemark.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)


async def handle(
    node: Node, request: ListPartitionReassignmentsRequest, _context: RequestContext
) -> ListPartitionReassignmentsResponse:
    return ListPartitionReassignmentsResponse(
        topics=[
            OngoingTopicReassignment(name=topic.name, partitions=ongoing)
            for topic, partitions in _asked_about(node, request)
            if (ongoing := list(_ongoing(topic, partitions)))
        ]
    )


def refuse(
    _request: ListPartitionReassignmentsRequest, error: RequestError
) -> ListPartitionReassignmentsResponse:
    """The response to a request that came to nothing."""
    return ListPartitionReassignmentsResponse(error_code=error.code, error_message=error.message)


def _asked_about(
    node: Node, request: ListPartitionReassignmentsRequest
) -> Iterator[tuple[Topic, Iterable[int]]]:
    if request.topics is None:
        for topic in node.topics:
            yield topic, sorted(topic.metadata.wanted)
        return
    for each in request.topics:
        found = node.topics.get(each.name)
        if found is not None:
            yield found, distinct(each.partition_indexes)


def _ongoing(topic: Topic, partitions: Iterable[int]) -> Iterator[OngoingPartitionReassignment]:
    metadata = topic.metadata
    for partition in partitions:
        wanted = metadata.wanted.get(partition)
        if wanted is None:
            continue
        assigned, replicas = metadata.assignments[partition], metadata.replicas(partition)
        yield OngoingPartitionReassignment(
            partition_index=partition,
            replicas=replicas,
            adding_replicas=[node for node in wanted if node not in assigned],
            removing_replicas=[node for node in replicas if node not in wanted],
        )


CHANGE: Final = Change(
    handle=handle, refuse=refuse, response=ListPartitionReassignmentsResponse, may_repeat=True
)
