"""DeleteTopics: by name, or from version 6 by id."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from tidemark.broker.handlers.change import Change
from tidemark.broker.metadata.topic import Topic
from tidemark.broker.network.requests import RequestContext
from tidemark.broker.node import Node
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
    return DeleteTopicsResponse(
        responses=[await _delete(node, asked, context) for asked in _asked(request)]
    )


def _asked(request: DeleteTopicsRequest) -> Sequence[DeleteTopicState]:
    return [*request.topics, *(DeleteTopicState(name=name) for name in request.topic_names)]


async def _delete(
    node: Node, asked: DeleteTopicState, context: RequestContext
) -> DeletableTopicResult:
    name, topic_id = asked.name, asked.topic_id
    try:
        if not node.settings.delete_topic_enable:
            code = (
                ErrorCode.TOPIC_DELETION_DISABLED
                if context.api_version >= 3
                else ErrorCode.INVALID_REQUEST
            )
            raise RequestError(code, "delete.topic.enable is false on this broker")
        topic = _find(node, name, topic_id)
        name, topic_id = topic.name, topic.id
        await node.topics.delete(topic)
    except RequestError as error:
        return DeletableTopicResult(
            name=name, topic_id=topic_id, error_code=error.code, error_message=error.message
        )
    return DeletableTopicResult(name=name, topic_id=topic_id)


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
    by_name = [DeleteTopicState(name=name) for name in request.topic_names]
    return DeleteTopicsResponse(
        responses=[
            DeletableTopicResult(
                name=each.name,
                topic_id=each.topic_id,
                error_code=error.code,
                error_message=error.message,
            )
            for each in [*request.topics, *by_name]
        ]
    )


CHANGE: Final = Change(handle=handle, refuse=refuse, response=DeleteTopicsResponse)
