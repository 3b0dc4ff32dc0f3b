"""Asking a handler as a client would: what comes back has been through the wire."""

import inspect
from collections.abc import Awaitable, Callable
from typing import TypeVar

from tests.broker.nodes import context
from tidemark.broker.config import Address
from tidemark.broker.node import Node
from tidemark.broker.requests import RequestContext
from tidemark.protocol.codec import decode, encode
from tidemark.protocol.schema import Message

Q = TypeVar("Q", bound=Message)
R = TypeVar("R", bound=Message)


async def ask(
    handle: Callable[[Node, Q, RequestContext], Awaitable[R] | R],
    node: Node,
    request: Q,
    version: int,
    *,
    listener: Address | None = None,
) -> R:
    """The answer to `request` at `version`, both encoded and decoded again."""
    asked = decode(type(request), version, encode(request, version))
    answer = handle(node, asked, context(version, listener=listener))
    response: R = await answer if inspect.isawaitable(answer) else answer
    return decode(type(response), version, encode(response, version))
