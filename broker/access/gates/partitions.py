"""The gate of requests that name partitions by topic, and are answered the same way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

from tidemark.broker.access.gate import TOPIC, Looking, Passed, Visitor
from tidemark.broker.network.error_responses import filled, has_field
from tidemark.protocol.acls import Operation
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.schema import Message, Struct
from tidemark.protocol.schema.wire_types import Array
from tidemark.protocol.values import dataclass

# Any: requests and responses of whichever API it is.
ForAll: TypeAlias = Callable[[Visitor, Any], None]
"""Raises the `RequestError` with which each partition is refused."""


def nothing_else(_visitor: Visitor, _request: Any) -> None:
    pass


@dataclass(frozen=True, slots=True)
class At:
    """What the fields are called that topics and partitions stand in."""

    topics: str = "topics"
    topic: str = "name"
    partitions: str = "partitions"
    partition: str = "partition_index"
    """Of partitions that are structs; others are their own numbers."""
    error: str = "error_code"

    def struct_of_topic(self, response: type[Message]) -> type[Struct]:
        return element_of(response, self.topics)

    def struct_of_partition(self, response: type[Message]) -> type[Struct]:
        return element_of(self.struct_of_topic(response), self.partitions)


DEFAULT: Final = At()


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionGate:
    """Topics that the client may not do `operation` with are answered with an error for each of
    their partitions; the others go to the handler."""

    operation: Operation
    response: type[Message]
    asked: At = DEFAULT
    answered: At = DEFAULT
    for_all: ForAll = nothing_else
    """What has to be allowed besides, for any of it."""

    def __call__(self, visitor: Visitor, request: Any) -> Looking:
        topics = getattr(request, self.asked.topics)
        of_all = ErrorCode.NONE
        try:
            self.for_all(visitor, request)
        except RequestError as error:
            of_all = error.code
        allowed, refused = [], []
        for topic in topics:
            yield 1 + len(getattr(topic, self.asked.partitions))
            code = of_all or self._code(visitor, topic)
            if code is ErrorCode.NONE:
                allowed.append(topic)
            else:
                refused.append(self._refuse(topic, code))
        if not refused:
            return Passed(request, is_lasting=self._are_known(visitor, topics))
        if not allowed:
            return self._refused(refused)
        rest = replace(request, **{self.asked.topics: allowed})
        return Passed(
            rest,
            lambda response: self._with(response, refused),
            self._are_known(visitor, allowed),
        )

    def _are_known(self, visitor: Visitor, topics: Sequence[Any]) -> bool:
        """Whether there is nothing among what is allowed that could become a topic's id: those of
        other brokers' topics are heard of later."""
        return all(
            getattr(topic, self.asked.topic) or visitor.name_of(topic.topic_id) is not None
            for topic in topics
            if hasattr(topic, "topic_id")
        )

    def _code(self, visitor: Visitor, topic: Any) -> ErrorCode:
        name = getattr(topic, self.asked.topic)
        if not name and hasattr(topic, "topic_id"):
            name = visitor.name_of(topic.topic_id)
            if name is None:
                return ErrorCode.NONE  # The handler says so.
        error = visitor.refused(self.operation, TOPIC, name)
        return ErrorCode.NONE if error is None else error.code

    def _refuse(self, topic: Any, code: ErrorCode) -> Struct:
        asked, answered = self.asked, self.answered
        partition_struct = answered.struct_of_partition(self.response)
        values = {
            answered.topic: getattr(topic, asked.topic),
            answered.partitions: [
                filled(
                    partition_struct,
                    **{
                        answered.partition: getattr(each, asked.partition, each),
                        answered.error: code,
                    },
                )
                for each in getattr(topic, asked.partitions)
            ],
        }
        topic_struct = answered.struct_of_topic(self.response)
        if hasattr(topic, "topic_id") and has_field(topic_struct, "topic_id"):
            values["topic_id"] = topic.topic_id
        return filled(topic_struct, **values)

    def _refused(self, refused: Sequence[Struct]) -> Passed:
        return Passed(None, lambda _: filled(self.response, **{self.answered.topics: refused}))

    def _with(self, response: Any, refused: Sequence[Struct]) -> Any:
        answered = [*getattr(response, self.answered.topics), *refused]
        return replace(response, **{self.answered.topics: answered})


_ELEMENTS: Final[dict[tuple[type[Struct], str], type[Struct]]] = {}


def element_of(struct: type[Struct], name: str) -> type[Struct]:
    """What an array's field has elements of."""
    found = _ELEMENTS.get((struct, name))
    if found is None:
        found = _ELEMENTS[struct, name] = _element_of(struct, name)
    return found


def _element_of(struct: type[Struct], name: str) -> type[Struct]:
    (field,) = (each for each in struct.wire_fields if each.name == name)
    assert isinstance(field.type, Array)
    element: Any = field.type.element  # the struct's own wire type, which knows it
    found: type[Struct] = element.struct
    return found
