"""Asking a handler as a client would: what comes back has been through the wire."""

import inspect
from collections.abc import Callable
from typing import TypeVar

import trio

from tests.broker.nodes import context
from tidemark.broker.config import Address
from tidemark.broker.network.requests import Answer, Pending, RequestContext
from tidemark.broker.node import Node
from tidemark.protocol.codec import decode, encode
from tidemark.protocol.schema import Message

Q = TypeVar("Q", bound=Message)
R = TypeVar("R", bound=Message)


async def ask(
    handle: Callable[[Node, Q, RequestContext], Answer[R]],
    node: Node,
    request: Q,
    version: int,
    *,
    listener: Address | None = None,
) -> R:
    """The answer to `request` at `version`, both encoded and decoded again."""
    asked = decode(type(request), version, encode(request, version))
    answer = handle(node, asked, context(version, listener=listener))
    if isinstance(answer, Pending):
        response = await wait(answer)
    elif inspect.isawaitable(answer):
        response = await answer
    else:
        assert answer is not None
        response = answer
    return decode(type(response), version, encode(response, version))


async def wait(pending: Pending[R]) -> R:
    """The answer when it comes. Raises what it fails with."""
    done, outcomes = trio.Event(), list[tuple[R | None, Exception | None]]()

    def deliver(response: R | None, error: Exception | None) -> None:
        outcomes.append((response, error))
        done.set()

    pending.deliver_to(deliver)
    await done.wait()
    response, error = outcomes[0]
    if error is not None:
        raise error
    assert response is not None
    return response
