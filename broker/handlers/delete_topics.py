"""DeleteTopics: by name, or from version 6 by id."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from tidemark.broker.handlers.change import Change
from tidemark.broker.metadata.rounds import deadline_of
from tidemark.broker.metadata.topic import Topic
from tidemark.broker.network.requests import RequestContext
from tidemark.broker.node import Node
from tidemark.broker.steps import Steps
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from tidemark.protocol.schema import ZERO_UUID


async def handle(
    node: Node, request: DeleteTopicsRequest, context: RequestContext
) -> DeleteTopicsResponse:
    """Deletes each topic by itself; one that is not there does not keep the others."""
    asked, steps = _asked(request), Steps()
    found = await steps.each(asked, lambda each: _found(node, each, context))
    topics = [each for each in found if isinstance(each, Topic)]
    refused = iter(await node.topics.delete_all(topics, deadline=deadline_of(request.timeout_ms)))

    def result(of: tuple[DeleteTopicState, Topic | RequestError]) -> DeletableTopicResult:
        each, topic = of
        if isinstance(topic, Topic):
            return _result(each, topic, next(refused))
        return _result(each, None, topic)

    responses = await steps.each(zip(asked, found, strict=True), result)
    return DeleteTopicsResponse(responses=responses)


def _asked(request: DeleteTopicsRequest) -> Sequence[DeleteTopicState]:
    return [*request.topics, *(DeleteTopicState(name=name) for name in request.topic_names)]


def _found(node: Node, asked: DeleteTopicState, context: RequestContext) -> Topic | RequestError:
    try:
        if not node.settings.delete_topic_enable:
            code = (
                ErrorCode.TOPIC_DELETION_DISABLED
                if context.api_version >= 3
                else ErrorCode.INVALID_REQUEST
            )
            raise RequestError(code, "delete.topic.enable is false on this broker")
        return _find(node, asked.name, asked.topic_id)
    except RequestError as error:
        return error


def _result(
    asked: DeleteTopicState, topic: Topic | None, refused: RequestError | None
) -> DeletableTopicResult:
    name, topic_id = (asked.name, asked.topic_id) if topic is None else (topic.name, topic.id)
    if refused is None:
        return DeletableTopicResult(name=name, topic_id=topic_id)
    return DeletableTopicResult(
        name=name, topic_id=topic_id, error_code=refused.code, error_message=refused.message
    )


def _find(node: Node, name: str | None, topic_id: UUID) -> Topic:
    if name is None:
        topic, code = node.topics.by_id(topic_id), ErrorCode.UNKNOWN_TOPIC_ID
    elif topic_id != ZERO_UUID:
        raise RequestError(ErrorCode.INVALID_REQUEST, "name a topic or give its id, not both")
    else:
        topic, code = node.topics.get(name), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if topic is None:
        raise RequestError(code)
    return topic


def refuse(request: DeleteTopicsRequest, error: RequestError) -> DeleteTopicsResponse:
    return DeleteTopicsResponse(responses=[_result(each, None, error) for each in _asked(request)])


CHANGE: Final = Change(handle=handle, refuse=refuse, response=DeleteTopicsResponse)
