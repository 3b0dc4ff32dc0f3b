"""CreatePartitions: topics grow, each by itself."""

from collections import Counter
from typing import Final

from tidemark.broker.handlers.change import Change
from tidemark.broker.metadata.rounds import deadline_of
from tidemark.broker.metadata.topics import Growth
from tidemark.broker.network.requests import RequestContext
from tidemark.broker.node import Node
from tidemark.broker.steps import Steps, distinct
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
    answers = dict[str, RequestError | None]()
    wanted, steps = list[Growth](), Steps()
    for topic in asked.values():
        try:
            if times[topic.name] > 1:
                raise RequestError(
                    ErrorCode.INVALID_REQUEST, f"{topic.name} is named more than once"
                )
            wanted.append(_growth(node, topic))
        except RequestError as error:
            answers[topic.name] = error
        await steps.did(1)
    refused = await node.topics.grow_all(
        wanted,
        validate_only=request.validate_only,
        deadline=deadline_of(request.timeout_ms),
    )
    answers.update((each.topic.name, why) for each, why in zip(wanted, refused, strict=True))
    results = await steps.each(asked, lambda name: _result(name, answers[name]))
    return CreatePartitionsResponse(results=results)


def _growth(node: Node, asked: CreatePartitionsTopic) -> Growth:
    topic = node.topics.get(asked.name)
    if topic is None:
        raise RequestError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assignments = None
    if asked.assignments is not None:
        assignments = [tuple(map(NodeId, each.broker_ids)) for each in asked.assignments]
    return Growth(topic, asked.count, assignments)


def _result(name: str, refused: RequestError | None) -> CreatePartitionsTopicResult:
    if refused is None:
        return CreatePartitionsTopicResult(name=name)
    return CreatePartitionsTopicResult(
        name=name, error_code=refused.code, error_message=refused.message
    )


def refuse(request: CreatePartitionsRequest, error: RequestError) -> CreatePartitionsResponse:
    return CreatePartitionsResponse(
        results=[_result(name, error) for name in distinct(topic.name for topic in request.topics)]
    )


CHANGE: Final = Change(handle=handle, refuse=refuse, response=CreatePartitionsResponse)
