"""What brokers ask each other in Kafka's own requests, and what answers it.

The same handlers are in the table for clients' listeners: tools send these requests too.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING, TypeVar

import trio

from tidemark.broker.config.addresses import Address
from tidemark.broker.handlers import BETWEEN_BROKERS
from tidemark.broker.network.requests import (
    NO_CONNECTION,
    Answer,
    Handler,
    Pending,
    RequestContext,
    Session,
)
from tidemark.broker.peers.asking import ask_broker
from tidemark.protocol.codec import decode, encode
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.peer.ask import AskRequest, AskResponse
from tidemark.protocol.registry import APIS, api_of
from tidemark.protocol.schema import Message
from tidemark.protocol.types import NodeId

if TYPE_CHECKING:
    from tidemark.broker.node import Node
    from tidemark.broker.peers.calls import PeerHandler

R = TypeVar("R", bound=Message)


def asked_of(node: Node, answered: Mapping[int, Handler] = BETWEEN_BROKERS) -> PeerHandler:
    """What answers other brokers."""

    async def answer(asker: NodeId | None, request: AskRequest) -> AskResponse:
        handler, api = answered.get(request.api_key), APIS.get(request.api_key)
        if handler is None or api is None or not api.speaks(request.api_version):
            return AskResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
        try:
            message = decode(api.request, request.api_version, request.body)
            context = _context(request.api_version, asker)
            response = await settled(handler(node, message, context))
        except RequestError as error:
            return AskResponse(error_code=error.code, error_message=error.message)
        return AskResponse(body=encode(response, request.api_version))

    return answer


class Asking:
    """Asks brokers, this one among them, from the moment on in which there is a node."""

    def __init__(self) -> None:
        self.node: Node | None = None

    async def ask(self, broker: NodeId, request: Message, answer_type: type[R]) -> R:
        """That broker's answer. Raises `RequestError`: see `ask_broker`."""
        if self.node is None:
            raise RequestError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "this broker is starting")
        if broker != self.node.node_id:
            return await ask_broker(self.node.calls, broker, request, answer_type)
        api = api_of(type(request))
        answer = BETWEEN_BROKERS[api.key](self.node, request, _context(api.max_version, broker))
        response = await settled(answer)
        assert isinstance(response, answer_type)
        return response


async def settled(answer: Answer[R]) -> R:
    """A handler's answer, once it is there. Raises `RequestError` where it has failed."""
    assert answer is not None, "between brokers every request is answered"
    if isinstance(answer, Pending):
        return await _wait(answer)
    return await answer if isinstance(answer, Awaitable) else answer


async def _wait(pending: Pending[R]) -> R:
    settled, outcome = trio.Event(), list[R | Exception]()

    def take(response: R | None, error: Exception | None) -> None:
        outcome.extend(each for each in (error, response) if each is not None)
        settled.set()

    pending.deliver_to(take)
    await settled.wait()
    if isinstance(outcome[0], Exception):
        raise outcome[0]
    return outcome[0]


def _context(api_version: int, asker: NodeId | None) -> RequestContext:
    session = Session(connection_id=NO_CONNECTION, client_host="", listener=Address("", 0))
    return RequestContext(api_version, f"broker-{asker}", session)


async def not_yet(_: NodeId | None, request: AskRequest) -> AskResponse:
    """The answer of a broker that is starting."""
    del request
    return AskResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
