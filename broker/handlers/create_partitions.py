"""CreatePartitions: topics grow, each by itself."""

from collections import Counter
from typing import Final

from tidemark.broker.handlers.change import Change
from tidemark.broker.network.requests import RequestContext
from tidemark.broker.node import Node
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from tidemark.protocol.types import NodeId


async def handle(
    node: Node, request: CreatePartitionsRequest, _context: RequestContext
) -> CreatePartitionsResponse:
    times = Counter(topic.name for topic in request.topics)
    asked = {topic.name: topic for topic in request.topics}
    results = []
    for topic in asked.values():
        try:
            if times[topic.name] > 1:
                raise RequestError(
                    ErrorCode.INVALID_REQUEST, f"{topic.name} is named more than once"
                )
            await _grow(node, topic, validate_only=request.validate_only)
            results.append(CreatePartitionsTopicResult(name=topic.name))
        except RequestError as error:
            results.append(
                CreatePartitionsTopicResult(
                    name=topic.name, error_code=error.code, error_message=error.message
                )
            )
    return CreatePartitionsResponse(results=results)


async def _grow(node: Node, asked: CreatePartitionsTopic, *, validate_only: bool) -> None:
    topic = node.topics.get(asked.name)
    if topic is None:
        raise RequestError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assignments = None
    if asked.assignments is not None:
        assignments = [tuple(map(NodeId, each.broker_ids)) for each in asked.assignments]
    await node.topics.create_partitions(
        topic, asked.count, assignments, validate_only=validate_only
    )


def refuse(request: CreatePartitionsRequest, error: RequestError) -> CreatePartitionsResponse:
    return CreatePartitionsResponse(
        results=[
            CreatePartitionsTopicResult(
                name=name, error_code=error.code, error_message=error.message
            )
            for name in dict.fromkeys(topic.name for topic in request.topics)
        ]
    )


CHANGE: Final = Change(handle=handle, refuse=refuse, response=CreatePartitionsResponse)
