"""Kafka's own requests between brokers, over the connections that brokers have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeVar

from tidemark.protocol.codec import decode, encode
from tidemark.protocol.errors import ErrorCode, MalformedMessage, RequestError
from tidemark.protocol.messages.peer.ask import AskRequest, AskResponse
from tidemark.protocol.registry import api_of
from tidemark.protocol.schema import Message
from tidemark.protocol.types import NodeId

R = TypeVar("R", bound=Message)


class Calls(Protocol):
    """The connections to the other brokers."""

    @property
    def up(self) -> Mapping[NodeId, int]:
        """Who is connected."""
        ...

    async def call(self, node: NodeId, request: Message, answer_type: type[R]) -> R:
        """The answer. Raises `RequestError` NETWORK_EXCEPTION if the connection is lost before."""
        ...


async def ask_broker(calls: Calls, node: NodeId, request: Message, answer_type: type[R]) -> R:
    """Another broker's answer to a request, in its newest version.

    Raises `RequestError`: what that broker says, NETWORK_EXCEPTION where nobody knows whether it
    has heard, UNKNOWN_SERVER_ERROR where its answer cannot be read. How long it may take is the
    caller's to say.
    """
    api = api_of(type(request))
    asked = AskRequest(
        api_key=api.key, api_version=api.max_version, body=encode(request, api.max_version)
    )
    answered = await calls.call(node, asked, AskResponse)
    if answered.error_code != ErrorCode.NONE:
        raise RequestError(ErrorCode(answered.error_code), answered.error_message)
    try:
        return decode(answer_type, api.max_version, answered.body)
    except MalformedMessage as error:
        what = f"broker {node} answered {api.name} with what cannot be read: {error}"
        raise RequestError(ErrorCode.UNKNOWN_SERVER_ERROR, what) from error
