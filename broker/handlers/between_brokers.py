"""What brokers ask each other in Kafka's own requests, and what answers it.

The same handlers are in the table for clients' listeners: tools send these requests too.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import trio

from tidemark.broker.config.addresses import Address
from tidemark.broker.handlers import write_txn_markers
from tidemark.broker.network.requests import Answer, Handler, Pending, RequestContext, Session
from tidemark.protocol.codec import decode, encode
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.peer.ask import AskRequest, AskResponse
from tidemark.protocol.registry import APIS
from tidemark.protocol.schema import Message
from tidemark.protocol.types import NodeId

if TYPE_CHECKING:
    from tidemark.broker.node import Node
    from tidemark.broker.peers.calls import PeerHandler

NO_CONNECTION: Final = 0
"""The connection of who is another broker; connections of clients count from 1."""

ANSWERED: Final[Mapping[int, Handler]] = MappingProxyType({27: write_txn_markers.handle})
"""By API key."""


def asked_of(node: Node, answered: Mapping[int, Handler] = ANSWERED) -> PeerHandler:
    """What answers other brokers."""

    async def answer(asker: NodeId | None, request: AskRequest) -> AskResponse:
        handler, api = answered.get(request.api_key), APIS.get(request.api_key)
        if handler is None or api is None or not api.speaks(request.api_version):
            return AskResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
        session = Session(
            connection_id=NO_CONNECTION, client_host="", listener=Address("", 0), user=None
        )
        context = RequestContext(request.api_version, f"broker-{asker}", session)
        try:
            message = decode(api.request, request.api_version, request.body)
            response = await settled(handler(node, message, context))
        except RequestError as error:
            return AskResponse(error_code=error.code, error_message=error.message)
        return AskResponse(body=encode(response, request.api_version))

    return answer


async def settled(answer: Answer[Message]) -> Message:
    """A handler's answer, once it is there. Raises `RequestError` where it has failed."""
    assert answer is not None, "between brokers every request is answered"
    if isinstance(answer, Message):
        return answer
    if not isinstance(answer, Pending):
        return await answer
    settled, outcome = trio.Event(), list[Any]()  # Any: a response or an error

    def take(response: Message | None, error: RequestError | None) -> None:
        outcome.append(response if error is None else error)
        settled.set()

    answer.deliver_to(take)
    await settled.wait()
    if isinstance(outcome[0], RequestError):
        raise outcome[0]
    response: Message = outcome[0]
    return response


async def not_yet(_: NodeId | None, request: AskRequest) -> AskResponse:
    """The answer of a broker that is starting."""
    del request
    return AskResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
