"""From a frame to an answer: header, version, decode, handler.

A handler's three ways to fail are told apart here and in `calls`. A `RequestError` is answered,
where the response has a place for it. Bytes that do not parse close the connection. Anything else
is our bug: logged, counted, answered UNKNOWN_SERVER_ERROR, and no other request notices.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from struct import Struct
from struct import error as StructError
from time import perf_counter
from typing import Any, Final

from tidemark.broker.metrics import BadInput
from tidemark.broker.network.calls import Call, Route
from tidemark.broker.network.odd_events import OddEvents
from tidemark.broker.network.requests import (
    FrameHandler,
    Handler,
    NotNow,
    Pending,
    RequestContext,
    Session,
    Unanswerable,
    new_context,
)
from tidemark.broker.network.send_queue import Part
from tidemark.broker.node import Node
from tidemark.broker.quotas.charge import Charge
from tidemark.broker.steps import pace_of_loop
from tidemark.protocol.errors import ErrorCode, UnsupportedVersion
from tidemark.protocol.frames import ApiCodec, decode_request_header
from tidemark.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from tidemark.protocol.registry import API_VERSIONS_KEY, APIS
from tidemark.protocol.schema import Message

# What a client may send before it has proven who it is: SaslHandshake, SaslAuthenticate.
_BEFORE_SASL: Final = frozenset({API_VERSIONS_KEY, 17, 36})

# What changes something that the next request of the connection may look at: it finds it done, as
# it would with Kafka, which takes one request at a time. CreateTopics, DeleteTopics, DeleteRecords,
# CreateAcls, DeleteAcls, AlterConfigs, SaslAuthenticate, CreatePartitions, DeleteGroups,
# IncrementalAlterConfigs, OffsetDelete, AlterClientQuotas, AlterUserScramCredentials.
_SEEN_BY_NEXT: Final = frozenset({19, 20, 21, 30, 31, 33, 36, 37, 42, 44, 47, 49, 51})

# What changes nothing need not be answered once the client has gone: ListOffsets, Metadata, and
# what describes or lists groups (15, 16, 69), ACLs, configs, directories, users and partitions.
_FOR_CLIENT_ALONE: Final = frozenset({2, 3, 15, 16, 29, 32, 35, 50, 69, 75})

# A request begins with them, two bytes each: read as one number.
_KEY_AND_VERSION: Final = Struct(">I")
_CORRELATION: Final = Struct(">i")
_CORRELATION_AT: Final = 4
# Where the answers come encoded.
_NO_CORRELATION: Final = 0

# However few partitions the broker is made for.
_ELEMENTS_MIN: Final = 50_000

Spawn = Callable[[Callable[[], Coroutine[Any, Any, None]]], None]  # Any: what it yields to trio
"""Runs a coroutine function in a task. The task is the broker's: a change of topics, say, is
finished though the client that asked for it has gone."""


class Dispatcher:
    """Answers frames by the handlers of one node."""

    def __init__(
        self, node: Node, handlers: Mapping[int, Handler], *, spawn: Spawn, odd_events: OddEvents
    ) -> None:
        self._node = node
        self._spawn = spawn
        # A request may name every partition, each in a topic of its own; more is an attack: a
        # frame of 100 MiB holds fifty million empty elements, and each becomes an object.
        self._elements_max = max(_ELEMENTS_MIN, 2 * node.settings.partitions_max)
        self._quotas = node.quotas
        self._not_authenticated = node.metrics.bad_input[BadInput.NOT_AUTHENTICATED]
        self._odd_events = odd_events
        self._handlers = handlers
        self._routes: dict[int, Route] = {}  # by API key and version, as a request begins with them

    def dispatch(
        self, frames: Sequence[memoryview], session: Session, came_at: float
    ) -> tuple[int, Call | list[Part] | None]:
        """Have the first of `frames` answered, and with it those that follow and can be done in one
        go; how many these were, and the parts of the answers if they are there at once, a call if
        they are not or went wrong, `None` where no answer is wanted. `came_at` is when they were
        received, by `perf_counter`.

        Raises `ProtocolError` and `Unanswerable`, after which the connection has to be closed, and
        `NotNow`, after which nothing has happened.
        """
        frame = frames[0]
        try:
            route = self._routes[_KEY_AND_VERSION.unpack_from(frame)[0]]
        except (KeyError, StructError):
            try:
                route = self._new_route(frame)
            except UnsupportedVersion as error:
                return 1, self._refuse_version(error, came_at)
        route.metrics.requests.value += 1
        if session.requires_sasl and not session.is_admitted and route.api.key not in _BEFORE_SASL:
            self._not_authenticated.inc()
            raise Unanswerable(f"{route.api.name} came before authentication")
        if route.knows_frames is not None and not self._quotas.is_on:
            answered = self._answer_known(route, route.knows_frames, frames, session, came_at)
            if answered is not None:
                return answered
        return 1, self._decode(route, frame, session, came_at)

    def _answer_known(
        self,
        route: Route,
        handler: FrameHandler,
        frames: Sequence[memoryview],
        session: Session,
        came_at: float,
    ) -> tuple[int, Call | list[Part] | None] | None:
        """As `dispatch` does, of frames that need not be decoded; `None` if the first has to be."""
        try:
            answered = handler.answer(self._node, frames, session, route.codec)
        except Exception as error:
            if len(frames) > 1:
                raise  # Which of them have been done is not known.
            call = Call(route, _CORRELATION.unpack_from(frames[0], _CORRELATION_AT)[0], came_at)
            call.fail(error)
            return 1, call
        if answered is None:
            return None
        count, answer = answered
        if count > 1:
            route.metrics.requests.value += count - 1
        if isinstance(answer, Pending):
            call = Call(route, _NO_CORRELATION, came_at, count=count)
            call.wait_for(answer)
            return count, call
        route.metrics.latency.observe(perf_counter() - came_at, count)
        return count, answer

    def _decode(
        self, route: Route, frame: memoryview, session: Session, came_at: float
    ) -> Call | list[Part] | None:
        """As `dispatch` does."""
        codec = route.codec
        has_quotas = self._quotas.is_on
        began_at = perf_counter() if has_quotas else 0.0
        correlation_id, client_id, request = codec.decode_request(frame, self._elements_max)
        context = new_context((codec.version, client_id, session))
        if has_quotas and (meter := self._quotas.meter(session, client_id)) is not None:
            charge = Charge(self._quotas, meter, session, codec, len(frame))
            charge.busy_seconds = perf_counter() - began_at
            return self._call(route, correlation_id, request, context, charge, came_at)
        if route.is_async:
            call = Call(route, correlation_id, came_at)
            self._spawn(partial(self._run, call, request, context))
            return call
        try:
            if route.knows_frames is not None:
                route.knows_frames.decoded(frame, request, session, codec)
            answer = route.handle(self._node, request, context)
        except NotNow:
            route.metrics.requests.value -= 1  # It will come again.
            raise
        except Exception as error:
            call = Call(route, correlation_id, came_at)
            call.fail(error)
            return call
        if isinstance(answer, Pending):
            call = Call(route, correlation_id, came_at)
            call.wait_for(answer)
            return call
        parts = None
        if answer is not None:
            try:
                parts = codec.encode_response(answer, correlation_id)  # type: ignore[arg-type]  # handlers of the third kind are async
            except Exception:
                call = Call(route, correlation_id, came_at)
                call.answer(answer)  # type: ignore[arg-type]  # as above; it says what is wrong
                return call
        route.metrics.latency.observe(perf_counter() - came_at)
        return parts  # type: ignore[return-value]  # records not in memory are log slices

    def _call(
        self,
        route: Route,
        correlation_id: int,
        request: Message,
        context: RequestContext,
        charge: Charge,
        came_at: float,
    ) -> Call | None:
        """As `dispatch` does, of a request of a client that has quotas."""
        call = Call(route, correlation_id, came_at)
        call.charge = charge
        if route.is_async:
            self._spawn(partial(self._run, call, request, context))
            return call
        began_at = perf_counter()
        try:
            answer = route.handle(self._node, request, context)
        except NotNow:
            route.metrics.requests.value -= 1  # It will come again.
            raise
        except Exception as error:
            charge.busy_seconds += perf_counter() - began_at
            call.fail(error)
            return call
        charge.busy_seconds += perf_counter() - began_at
        if answer is None:
            charge.settle_unanswered()
            return None
        if isinstance(answer, Pending):
            call.wait_for(answer)
        else:
            call.answer(answer)  # type: ignore[arg-type]  # handlers of the third kind are async
        return call

    def _new_route(self, frame: memoryview) -> Route:
        """The route of a version that is asked for the first time."""
        header, _ = decode_request_header(frame)
        if header.api_key not in self._handlers:
            raise UnsupportedVersion(header.api_key, header.api_version)
        return self.route(header.api_key, header.api_version)

    def route(self, api_key: int, version: int) -> Route:
        """The route of a version that is spoken, made and its codecs compiled on first use."""
        key_and_version = api_key << 16 | version
        route = self._routes.get(key_and_version)
        if route is None:
            handle = self._handlers[api_key]
            route = self._routes[key_and_version] = Route(
                ApiCodec(APIS[api_key], version),
                handle,
                inspect.iscoroutinefunction(handle),
                api_key in _SEEN_BY_NEXT,
                handle if isinstance(handle, FrameHandler) else None,
                self._node.metrics.api(api_key),
                self._odd_events,
            )
        return route

    def _refuse_version(self, error: UnsupportedVersion, came_at: float) -> Call:
        """Trap A3: only ApiVersions is answered, in version 0, which every client can read."""
        is_answered = error.api_key == API_VERSIONS_KEY and error.api_key in self._handlers
        if not is_answered or error.correlation_id is None:
            raise error
        route = self.route(API_VERSIONS_KEY, 0)
        route.metrics.requests.inc()
        route.metrics.errors.inc()
        api = route.api
        own_range = ApiVersion(
            api_key=api.key, min_version=api.min_version, max_version=api.max_version
        )
        call = Call(route, error.correlation_id, came_at)
        call.answer(
            ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=(own_range,))
        )
        return call

    async def _run(self, call: Call, request: Message, context: RequestContext) -> None:
        """The task of an async handler: whatever it raises ends here."""
        await pace_of_loop().begin(context.session.connection_id)
        if context.session.is_over and call.route.api.key in _FOR_CLIENT_ALONE:
            return
        try:
            response = await call.route.handle(self._node, request, context)  # type: ignore[misc]  # it is async
        except Exception as error:
            call.fail(error)
        else:
            call.answer(response)
