"""Handlers behind their gates: a table like the one of the handlers, for a broker with an
authorizer.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tidemark.broker.access.gate import Gate, Passed, Visitor, at_once, in_steps
from tidemark.broker.access.gates import GATES
from tidemark.broker.handlers import CHANGES
from tidemark.broker.network.requests import (
    Answer,
    FrameHandler,
    Handler,
    Pending,
    RequestContext,
    Session,
)
from tidemark.protocol.errors import RequestError

if TYPE_CHECKING:
    from tidemark.broker.network.send_queue import Part
    from tidemark.broker.node import Node
    from tidemark.protocol.frames import ApiCodec


class GatedHandlers(Mapping[int, Handler]):
    """By API key. An API that has no gate is not served: what was forgotten lets nobody in."""

    def __init__(self, handlers: Mapping[int, Handler], node: Node) -> None:
        self._handlers = handlers
        self._node = node

    def __getitem__(self, key: int) -> Handler:
        handler, gate = self._handlers[key], GATES[key]
        if isinstance(handler, FrameHandler):
            return _GatedFrames(self._node, handler, gate)
        if inspect.iscoroutinefunction(handler):
            return _GatedTask(key, handler, gate).answer
        return _Gated(handler, gate).answer

    def __contains__(self, key: object) -> bool:
        return key in self._handlers and key in GATES

    def __iter__(self) -> Iterator[int]:
        return (key for key in self._handlers if key in GATES)

    def __len__(self) -> int:
        return sum(1 for _ in self)


# Any: requests and responses of whichever API it is.
class _Gated:
    """A handler that answers at once, or with something pending."""

    def __init__(self, handler: Handler, gate: Gate) -> None:
        self._handler = handler
        self._gate = gate

    def answer(self, node: Node, request: Any, context: RequestContext) -> Answer[Any]:
        visitor = Visitor(node, context.session, context.api_version)
        passed = at_once(self._gate(visitor, request))
        return _answered(self._handler, passed, node, context)


class _GatedTask:
    """A handler that is a coroutine function."""

    def __init__(self, key: int, handler: Handler, gate: Gate) -> None:
        self._key = key
        self._handler = handler
        self._gate = gate

    async def answer(self, node: Node, request: Any, context: RequestContext) -> Any:
        visitor = Visitor(node, context.session, context.api_version)
        try:
            passed = await in_steps(self._gate(visitor, request))
        except RequestError as error:
            change = CHANGES.get(self._key)
            if change is None:
                raise
            return change.refused(request, error, context.api_version)
        if passed.request is None:
            assert passed.finish is not None, "what is not passed on is answered"
            return passed.finish(None)
        answer = self._handler(node, passed.request, context)
        assert isinstance(answer, Awaitable)
        response = await answer
        return response if passed.finish is None else passed.finish(response)


class _GatedFrames(FrameHandler):
    """A handler that knows requests again without their being decoded: those that were let through
    whole, for as long as no ACL changes."""

    def __init__(self, node: Node, handler: FrameHandler, gate: Gate) -> None:
        self._node = node
        self._handler = handler
        self._gate = gate
        self._last: tuple[Any, Passed] | None = None
        """The request that was decoded last, and what was let through of it."""

    def __call__(self, node: Node, request: Any, context: RequestContext) -> Answer[Any]:
        last, self._last = self._last, None
        if last is not None and last[0] is request:
            passed = last[1]
        else:
            visitor = Visitor(node, context.session, context.api_version)
            passed = at_once(self._gate(visitor, request))
        return _answered(self._handler, passed, node, context)

    def answer(
        self, node: Node, frames: Sequence[memoryview], session: Session, codec: ApiCodec
    ) -> tuple[int, list[Part] | Pending[list[Part]]] | None:
        if session.allowed_at != node.access.revision:
            session.allowed_at = node.access.revision
            session.one_batches = session.one_fetches = None
            session.gathers = 0
        return self._handler.answer(node, frames, session, codec)

    def decoded(self, frame: memoryview, request: Any, session: Session, codec: ApiCodec) -> None:
        passed = at_once(self._gate(Visitor(self._node, session, codec.version), request))
        self._last = request, passed
        if not passed.is_lasting:
            return
        if passed.request is request:
            self._handler.decoded(frame, request, session, codec)


def _answered(handler: Handler, passed: Passed, node: Node, context: RequestContext) -> Answer[Any]:
    """The answer of a handler that is no coroutine function."""
    if passed.finish is None:
        return handler(node, passed.request, context)
    if passed.request is None:
        return passed.finish(None)
    answer = handler(node, passed.request, context)
    if isinstance(answer, Pending):
        return _finished(answer, passed.finish)
    return passed.finish(answer)


def _finished(pending: Pending[Any], finish: Callable[[Any], Any]) -> Pending[Any]:
    """One that is completed with what the gate makes of the other's answer."""
    outer: Pending[Any] = Pending()

    def deliver(response: Any, error: Exception | None) -> None:
        if error is not None:
            outer.fail(error)
        else:
            outer.try_complete(lambda: finish(response))

    outer.on_abandon(pending.abandon)
    pending.deliver_to(deliver)
    return outer
