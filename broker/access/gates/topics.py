"""The gates of topics: which there are, and making and changing them."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from tidemark.broker.access.gate import CLUSTER, TOPIC, Looking, Passed, Visitor
from tidemark.broker.access.gates.each import EachGate, each_named
from tidemark.broker.network.error_responses import said_of
from tidemark.protocol.acls import Operation
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages import describe_topic_partitions as pages
from tidemark.protocol.messages import metadata as messages
from tidemark.protocol.messages.create_partitions import CreatePartitionsResponse
from tidemark.protocol.messages.create_topics import (
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from tidemark.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from tidemark.protocol.messages.describe_replicas import (
    DescribeReplicasRequest,
    DescribeReplicasResponse,
    DescribeReplicasTopic,
)
from tidemark.protocol.schema import ZERO_UUID

_NULL_ASKS_FOR_ALL_SINCE: Final = 1
_IDS_SINCE: Final = 12
_UNKNOWN_ID: Final = RequestError(ErrorCode.UNKNOWN_TOPIC_ID)
"""What the handler would say. It is not asked: when it answers, or at the broker to which it passes
the request on, there may be a topic of that id, and nobody has looked who may know of it."""


def metadata(visitor: Visitor, request: messages.MetadataRequest) -> Looking:
    """Who asks for all topics is told of those that it may describe."""
    topics = request.topics
    if topics is None or (not topics and visitor.api_version < _NULL_ASKS_FOR_ALL_SINCE):
        return Passed(request, lambda response: _shown(visitor, response))
    allowed, refused = [], []
    for each in topics:
        yield 1
        error = _metadata_error(visitor, each, may_create=request.allow_auto_topic_creation)
        if error is None:
            allowed.append(each)
        else:
            refused.append(
                messages.MetadataResponseTopic(
                    error_code=error.code, name=each.name, topic_id=each.topic_id, partitions=()
                )
            )
    if not refused:
        return Passed(request)
    # With no topics at all there are still the brokers to tell of.
    rest = replace(request, topics=allowed)
    if not allowed and visitor.api_version < _NULL_ASKS_FOR_ALL_SINCE:
        # In which all would be meant. Those that are refused are asked for, and not made.
        looking = replace(request, allow_auto_topic_creation=False)
        return Passed(looking, lambda response: replace(response, topics=refused))
    return Passed(rest, lambda response: replace(response, topics=[*response.topics, *refused]))


def _shown(visitor: Visitor, response: messages.MetadataResponse) -> messages.MetadataResponse:
    shown = [
        each
        for each in response.topics
        if each.name is not None and visitor.may(Operation.DESCRIBE, TOPIC, each.name)
    ]
    return replace(response, topics=shown)


def _metadata_error(
    visitor: Visitor, asked: messages.MetadataRequestTopic, *, may_create: bool
) -> RequestError | None:
    name = asked.name
    if name is None or asked.topic_id != ZERO_UUID:
        # The handler goes by the id, whatever name is with it.
        if visitor.api_version < _IDS_SINCE:
            return None  # It says that these are not asked for yet.
        name = visitor.name_of(asked.topic_id)
    if name is None:
        return _UNKNOWN_ID
    error = visitor.refused(Operation.DESCRIBE, TOPIC, name)
    node = visitor.node
    if error is not None or not (may_create and node.settings.auto_create_topics_enable):
        return error
    return None if node.topics.get(name) is not None else _creation_error(visitor, name)


def _creation_error(visitor: Visitor, name: str) -> RequestError | None:
    if visitor.may(Operation.CREATE, CLUSTER):
        return None
    return visitor.refused(Operation.CREATE, TOPIC, name)


_CREATE: Final = EachGate(
    check=lambda visitor, topic: _creation_error(visitor, topic.name),
    response=CreateTopicsResponse,
    asked="topics",
    answered="topics",
    echoed={"name": "name"},
)


def create_topics(visitor: Visitor, request: CreateTopicsRequest) -> Looking:
    passed = yield from _CREATE(visitor, request)
    return passed.then(
        lambda response: replace(
            response, topics=[_without_configs(visitor, each) for each in response.topics]
        )
    )


def _without_configs(visitor: Visitor, topic: CreatableTopicResult) -> CreatableTopicResult:
    """What a topic is like is told to who may describe its configs (KIP-525)."""
    if topic.error_code or visitor.may(Operation.DESCRIBE_CONFIGS, TOPIC, topic.name):
        return topic
    return replace(
        topic,
        topic_config_error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        num_partitions=-1,
        replication_factor=-1,
        configs=None,
    )


create_partitions: Final = each_named(
    Operation.ALTER,
    TOPIC,
    response=CreatePartitionsResponse,
    asked="topics",
    answered="results",
    name="name",
    of="name",
)


def delete_topics(visitor: Visitor, request: DeleteTopicsRequest) -> Looking:
    refused: list[DeletableTopicResult] = []

    def is_allowed(asked: DeleteTopicState) -> bool:
        name = visitor.name_of(asked.topic_id) if asked.name is None else asked.name
        error = _UNKNOWN_ID if name is None else visitor.refused(Operation.DELETE, TOPIC, name)
        if error is not None:
            said = said_of(DeletableTopicResult, error)
            if asked.name is None:
                # What it is called is not told.
                said["error_message"] = error.message and "it may not be deleted"
            refused.append(DeletableTopicResult(name=asked.name, topic_id=asked.topic_id, **said))
        return error is None

    topics, names = [], []
    for each in request.topics:
        yield 1
        if is_allowed(each):
            topics.append(each)
    for name in request.topic_names:
        yield 1
        if is_allowed(DeleteTopicState(name=name)):
            names.append(name)
    if not refused:
        return Passed(request)
    if not topics and not names:
        return Passed(None, lambda _: DeleteTopicsResponse(responses=refused))
    return Passed(
        replace(request, topics=topics, topic_names=names),
        lambda response: replace(response, responses=[*response.responses, *refused]),
    )


def describe_topic_partitions(
    visitor: Visitor, request: pages.DescribeTopicPartitionsRequest
) -> Looking:
    """Pages of all topics are pages of those that the client may describe: a cursor tells of no
    other, either."""
    if not request.topics:
        names = _describable(visitor)
        if not names:
            return Passed(
                None,
                lambda _: pages.DescribeTopicPartitionsResponse(topics=(), next_cursor=None),
            )
        return Passed(replace(request, topics=[pages.TopicRequest(name=each) for each in names]))
    return (yield from _PAGES(visitor, request))


_PAGES: Final = each_named(
    Operation.DESCRIBE,
    TOPIC,
    response=pages.DescribeTopicPartitionsResponse,
    asked="topics",
    answered="topics",
    name="name",
    of="name",
)


def describe_replicas(visitor: Visitor, request: DescribeReplicasRequest) -> Looking:
    if request.topics is None:
        topics = [
            DescribeReplicasTopic(topic=each, partitions=None) for each in _describable(visitor)
        ]
        return Passed(replace(request, topics=topics))
    return (yield from _REPLICAS(visitor, request))


_REPLICAS: Final = each_named(
    Operation.DESCRIBE,
    TOPIC,
    response=DescribeReplicasResponse,
    asked="topics",
    answered="topics",
    name="topic",
    of="topic",
)


def _describable(visitor: Visitor) -> list[str]:
    return [
        topic.name
        for topic in visitor.node.topics
        if visitor.may(Operation.DESCRIBE, TOPIC, topic.name)
    ]
