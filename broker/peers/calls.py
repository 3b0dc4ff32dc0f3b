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
    """Those of one connection, by correlation id."""

    __slots__ = ("_by_id", "_ids")

    def __init__(self) -> None:
        self._ids = itertools.count(1)
        self._by_id: dict[int, PendingCall] = {}

    def begin(self, api: PeerApi, version: int) -> tuple[int, PendingCall]:
        correlation_id = next(self._ids) % CORRELATION_IDS + 1
        call = self._by_id[correlation_id] = PendingCall(api, version)
        return correlation_id, call

    def settle(self, correlation_id: int, body: memoryview) -> None:
        """An answer has come. One that nobody waits for any more is passed over."""
        call = self._by_id.get(correlation_id)
        if call is not None:
            assert call.api.response is not None
            call.settle(decode_body(call.api.response, call.version, body))
        elif correlation_id <= 0:
            raise MalformedMessage(f"an answer with correlation id {correlation_id}")

    def forget(self, correlation_id: int) -> None:
        self._by_id.pop(correlation_id, None)

    def fail_all(self, reason: str) -> None:
        calls, self._by_id = self._by_id, {}
        for call in calls.values():
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
