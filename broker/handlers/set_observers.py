"""SetObservers: which brokers keep a copy of a partition without a vote."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tidemark.broker.handlers.change import Change
from tidemark.broker.network.requests import RequestContext
from tidemark.broker.steps import Steps
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.set_observers import (
    ObservedPartition,
    ObserversSet,
    SetObserversRequest,
    SetObserversResponse,
)
from tidemark.protocol.types import NodeId

if TYPE_CHECKING:
    from tidemark.broker.node import Node


async def handle(
    node: Node, request: SetObserversRequest, _context: RequestContext
) -> SetObserversResponse:
    """On the leader of the metadata."""
    steps, partitions = Steps(), list[ObserversSet]()
    for asked in request.partitions:
        partitions.append(await _set(node, asked))
        await steps.did(1)
    return SetObserversResponse(partitions=partitions)


async def _set(node: Node, asked: ObservedPartition) -> ObserversSet:
    try:
        topic = node.topics.get(asked.topic)
        if topic is None:
            raise RequestError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {asked.topic}"
            )
        wanted = topic.config.observers
        if wanted not in (-1, len(asked.observers)):
            raise RequestError(
                ErrorCode.INVALID_REQUEST,
                f"{asked.topic} is to have {wanted} observers of each partition, as its config "
                f"observers says: name so many, or change that config",
            )
        await node.topics.set_observers(topic, asked.partition, tuple(map(NodeId, asked.observers)))
    except RequestError as error:
        return ObserversSet(
            topic=asked.topic,
            partition=asked.partition,
            error_code=error.code,
            error_message=error.message,
        )
    return ObserversSet(topic=asked.topic, partition=asked.partition)


CHANGE: Final = Change(handle=handle, response=SetObserversResponse, may_repeat=True)
