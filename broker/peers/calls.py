"""Calls between brokers: questions that are on their way, and those who answer them."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias

import trio

from tidemark.broker.network.odd_events import OddEvents
from tidemark.protocol.errors import ErrorCode, MalformedMessage, ProtocolError, RequestError
from tidemark.protocol.peer_frames import decode_body
from tidemark.protocol.peer_registry import PeerApi
from tidemark.protocol.schema import Message
from tidemark.protocol.types import NodeId

CORRELATION_IDS: Final = 2**31 - 1

PeerHandler: TypeAlias = Callable[[NodeId | None, Any], Awaitable[Message]]
"""Answers one kind of call. The caller is None in a Join without a Hello. Any: of that kind."""

PeerHandlers: TypeAlias = Mapping[type[Message], PeerHandler]


CALLS_MAX: Final = 256
"""So many of one connection are being answered at once. Behind them are clients, of whom there may
be any number: who calls waits for its turn, and a caller that does not has gone wrong."""


class PendingCall:
    """A call whose answer has not come."""

    __slots__ = ("_answer", "_error", "_settled", "api", "version")

    def __init__(self, api: PeerApi, version: int) -> None:
        self.api = api
        self.version = version
        self._settled = trio.Event()
        self._answer: Message | None = None
        self._error: RequestError | None = None

    def settle(self, answer: Message) -> None:
        self._answer = answer
        self._settled.set()

    def fail(self, error: RequestError) -> None:
        self._error = error
        self._settled.set()

    async def wait(self) -> Message:
        await self._settled.wait()
        if self._error is not None:
            raise self._error
        assert self._answer is not None
        return self._answer


class PendingCalls:
    """Those of one connection, by correlation id; also those that nobody waits for any more, as
    long as the other side works on them."""

    __slots__ = ("_by_id", "_ended", "_ids", "_places")

    def __init__(self) -> None:
        self._ids = itertools.count(1)
        self._by_id: dict[int, PendingCall] = {}
        self._places = trio.Semaphore(CALLS_MAX)
        self._ended: str | None = None
        """Why none will be answered any more."""

    async def begin(self, api: PeerApi, version: int) -> tuple[int, PendingCall]:
        """A call that is to be made at once, when its turn has come; or else given up. Raises
        `RequestError` NETWORK_EXCEPTION where the connection has ended by then."""
        try:
            self._places.acquire_nowait()
        except trio.WouldBlock:
            await self._places.acquire()
        if self._ended is not None:
            self._places.release()
            raise lost(self._ended)
        correlation_id = next(self._ids) % CORRELATION_IDS + 1
        call = self._by_id[correlation_id] = PendingCall(api, version)
        return correlation_id, call

    def settle(self, correlation_id: int, body: memoryview) -> None:
        """An answer has come. One that nobody waits for any more is passed over."""
        call = self._by_id.get(correlation_id)
        if call is not None:
            assert call.api.response is not None
            answer = decode_body(call.api.response, call.version, body)
            self.give_up(correlation_id)
            call.settle(answer)
        elif correlation_id <= 0:
            raise MalformedMessage(f"an answer with correlation id {correlation_id}")

    def give_up(self, correlation_id: int) -> PendingCall | None:
        """It is not to be answered any more, or never was."""
        call = self._by_id.pop(correlation_id, None)
        if call is not None:
            self._places.release()
        return call

    def fail_all(self, reason: str) -> None:
        """The connection has ended."""
        self._ended = reason
        for correlation_id in list(self._by_id):
            call = self.give_up(correlation_id)
            assert call is not None
            call.fail(lost(reason))


def lost(reason: str) -> RequestError:
    return RequestError(ErrorCode.NETWORK_EXCEPTION, reason)


async def answer_call(
    handlers: PeerHandlers,
    api: PeerApi,
    caller: NodeId | None,
    request: Message,
    odd_events: OddEvents,
) -> Message:
    """What the handler says, and if it fails, that it has failed.

    Raises `ProtocolError` for a request that carries another one which does not parse.
    """
    assert api.response is not None
    try:
        handler = handlers.get(api.request)
        if handler is None:
            raise RequestError(ErrorCode.UNSUPPORTED_VERSION, f"{api.name} is not answered here")
        return await handler(caller, request)
    except RequestError as error:
        return api.response(error_code=int(error.code), error_message=error.message)
    except ProtocolError:
        raise
    except Exception:
        odd_events.warn(
            "failed calls of brokers", "%s of broker %s failed", api.name, caller, error=True
        )
        return api.response(error_code=int(ErrorCode.UNKNOWN_SERVER_ERROR))
