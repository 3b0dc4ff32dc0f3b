"""The gate of how far groups have read: the group, and each topic of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from tidemark.broker.access.gate import GROUP, TOPIC, Passed, Visitor
from tidemark.broker.handlers.offset_fetch import question
from tidemark.broker.network.error_responses import filled
from tidemark.broker.steps import distinct
from tidemark.protocol.acls import Operation
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages import offset_fetch as messages
from tidemark.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse

_SEVERAL_SINCE: Final = 8
_GROUP_ERROR_SINCE: Final = 2


def offset_fetch(visitor: Visitor, request: OffsetFetchRequest) -> Passed:
    if visitor.api_version < _SEVERAL_SINCE:
        return _one(visitor, request)
    groups = distinct(request.groups, question)
    error = {each.group_id: _refused(visitor, each.group_id) for each in groups}
    allowed = [_Asked(visitor, each) for each in groups if error[each.group_id] is None]
    refused = [
        messages.OffsetFetchResponseGroup(group_id=each.group_id, topics=(), error_code=why.code)
        for each in groups
        if (why := error[each.group_id]) is not None
    ]

    def finish(response: OffsetFetchResponse | None) -> OffsetFetchResponse:
        answered = () if response is None else response.groups
        finished = [
            asked.finished(each, messages.OffsetFetchResponseTopics)
            for asked, each in zip(allowed, answered, strict=True)
        ]
        return OffsetFetchResponse(groups=[*finished, *refused])

    rest = replace(request, groups=[each.rest for each in allowed]) if allowed else None
    return Passed(rest, finish)


def _one(visitor: Visitor, request: OffsetFetchRequest) -> Passed:
    error = _refused(visitor, request.group_id)
    if error is None:
        asked = _Asked(visitor, request)
        return Passed(
            asked.rest,
            lambda response: asked.finished(response, messages.OffsetFetchResponseTopic),
        )
    if visitor.api_version >= _GROUP_ERROR_SINCE:
        raise error
    code = error.code
    topics = [
        _refused_topic(each, messages.OffsetFetchResponseTopic, code)
        for each in request.topics or ()
    ]
    return Passed(None, lambda _: OffsetFetchResponse(topics=topics))


def _refused(visitor: Visitor, group_id: str) -> RequestError | None:
    return visitor.refused(Operation.DESCRIBE, GROUP, group_id)


class _Asked:
    """What is asked of one group: the topics that the client may describe, and the others. Any: a
    request for one group, or one group of a request, which are alike."""

    def __init__(self, visitor: Visitor, asked: Any) -> None:
        self._visitor = visitor
        self._is_all = asked.topics is None
        self._refused: list[Any] = []
        self.rest = asked
        """What the handler is asked."""
        if not self._is_all:
            allowed = [each for each in asked.topics if not self._refuses(each)]
            if self._refused:
                self.rest = replace(asked, topics=allowed)

    def _refuses(self, topic: Any) -> bool:
        topic_id = getattr(topic, "topic_id", None)
        name = topic.name
        if not name and topic_id is not None:
            name = self._visitor.name_of(topic_id)
        if name is None or self._visitor.refused(Operation.DESCRIBE, TOPIC, name) is None:
            return False
        self._refused.append(topic)
        return True

    def finished(self, answer: Any, struct: type[Any]) -> Any:
        if answer.error_code:
            return answer
        if self._is_all:
            return replace(answer, topics=[each for each in answer.topics if self._shows(each)])
        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        refused = [_refused_topic(each, struct, code) for each in self._refused]
        return replace(answer, topics=[*answer.topics, *refused]) if refused else answer

    def _shows(self, topic: Any) -> bool:
        """Nobody is told of a topic that was not asked for, and is not to be known."""
        return self._visitor.may(Operation.DESCRIBE, TOPIC, topic.name)


_PARTITIONS: Final[dict[type[Any], type[Any]]] = {
    messages.OffsetFetchResponseTopic: messages.OffsetFetchResponsePartition,
    messages.OffsetFetchResponseTopics: messages.OffsetFetchResponsePartitions,
}


def _refused_topic(topic: Any, struct: type[Any], code: ErrorCode) -> Any:
    partitions: Sequence[Any] = [
        filled(_PARTITIONS[struct], partition_index=each, metadata="", error_code=code)
        for each in topic.partition_indexes
    ]
    values = {"topic_id": topic.topic_id} if hasattr(topic, "topic_id") else {}
    return filled(struct, name=topic.name, partitions=partitions, **values)
