"""Requests for the leader of the cluster's metadata that another broker has passed on.

Any broker takes any of these requests, and clients see no difference (trap M7).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tidemark.broker.handlers import CHANGES
from tidemark.broker.network.requests import RequestContext
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.peer.forward import ForwardRequest, ForwardResponse
from tidemark.protocol.registry import api_of
from tidemark.protocol.schema import Message
from tidemark.protocol.types import NodeId

if TYPE_CHECKING:
    from tidemark.broker.node import Node
    from tidemark.broker.peers.calls import PeerHandler


def forwarded_to(node: Node) -> PeerHandler:
    """What answers other brokers that pass their clients' requests on to this one."""

    async def answer(_: NodeId | None, request: ForwardRequest) -> ForwardResponse:
        return await node.controller.serve_forward(request, partial(answer_here, node))

    return answer


async def not_yet(_: NodeId | None, request: Message) -> ForwardResponse:
    """The answer of a broker that is starting: it may lead the metadata before it serves."""
    del request
    return ForwardResponse(error_code=ErrorCode.NOT_CONTROLLER)


async def answer_here(node: Node, request: Message, context: RequestContext) -> Message:
    """The leader's answer to a request that another broker has passed on."""
    change = CHANGES.get(api_of(type(request)).key)
    if change is None:
        raise RequestError(ErrorCode.INVALID_REQUEST, "that is answered by any broker")
    response: Message = await change.handle(node, request, context)
    return response
