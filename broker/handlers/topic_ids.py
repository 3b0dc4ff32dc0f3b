"""Topics in requests of the versions in which they go by their ids (KIP-516).

Inside the broker they go by their names; what a request says is given names here, as it comes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from tidemark.broker.metadata.topics import Topics
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.messages.produce import NAMES_UNTIL, ProduceRequest, TopicProduceData

# Whoever produces first need not wait for what groups say.
if TYPE_CHECKING:
    from tidemark.protocol.messages.offset_commit import OffsetCommitRequestTopic
    from tidemark.protocol.messages.offset_fetch import OffsetFetchRequestTopics

T = TypeVar("T", "OffsetCommitRequestTopic", "OffsetFetchRequestTopics", TopicProduceData)


def with_names(topics: Topics, asked: Sequence[T]) -> list[T]:
    """What is asked with the topics' names; a topic that there is not, or not any more, has none.

    One that was deleted and made again has another id, and is not meant.
    """
    found = ((each, topics.by_id(each.topic_id)) for each in asked)
    return [replace(each, name="" if topic is None else topic.name) for each, topic in found]


def named(topics: Topics, request: ProduceRequest, api_version: int) -> ProduceRequest:
    """The request, with the names of its topics."""
    if api_version <= NAMES_UNTIL:
        return request
    return replace(request, topic_data=with_names(topics, request.topic_data))


def unknown(name: str, *, by_id: bool) -> ErrorCode:
    """Why there is no such partition: nobody has the topic's id, or else as if by name."""
    return (
        ErrorCode.UNKNOWN_TOPIC_ID if by_id and not name else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    )
