"""A listener with real sockets and the real dispatch, in front of handlers that a test scripts.

Heartbeat stands for every API: its group id says what to do, its generation comes back as the
throttle time, so that a test knows whose answer it reads.
"""

import logging
import socket
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import cast

import trio

from tidemark.broker.config import Address, BrokerSettings, Endpoint
from tidemark.broker.handlers import api_versions
from tidemark.broker.metrics import Metrics
from tidemark.broker.network.accepting import bind
from tidemark.broker.network.connections import Connections
from tidemark.broker.network.dispatch import Dispatcher
from tidemark.broker.network.odd_events import OddEvents
from tidemark.broker.network.reactor import Reactor
from tidemark.broker.network.requests import (
    Handler,
    NotNow,
    Pending,
    RequestContext,
    Session,
    Unanswerable,
)
from tidemark.broker.network.timers import Timers
from tidemark.broker.network.turn import Turn
from tidemark.broker.node import Node
from tidemark.broker.replicas.held import Line
from tidemark.broker.steps import Steps
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.frames import decode_response, encode_request
from tidemark.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from tidemark.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from tidemark.protocol.registry import API_VERSIONS_KEY, APIS
from tidemark.protocol.schema import Message

HOLD_BACK_SECONDS = 1.0
HEARTBEAT = 12
LIST_GROUPS = 16
ANY_PORT = (Endpoint("PLAINTEXT", Address("127.0.0.1", 0)),)
SETTINGS = BrokerSettings(listeners=ANY_PORT)


async def settle() -> None:
    """Until the broker has done all that it can without more input."""
    for _ in range(5):
        await trio.sleep(0.005)


class Script:
    """What the handlers do, and what they saw."""

    def __init__(self) -> None:
        self.seen = list[int]()
        self.listed = list[int]()  # the connections that asked the async handler
        self.parked = list[tuple[int, Pending[HeartbeatResponse]]]()
        self.abandoned = list[int]()
        self.sent_bytes = list[int]()  # how much had been sent, at each "look"
        self.gate: trio.Event | None = None  # what the async handler waits for
        self.elements = 0  # how many the async handler works on
        self.line: Line | None = None  # where "hold" waits; without one it is taken
        self.session: Session | None = None  # of who has asked last

    def answer(self, number: int) -> None:
        """Complete the parked request of that number."""
        for index, (parked, pending) in enumerate(self.parked):
            if parked == number:
                del self.parked[index]
                pending.complete(HeartbeatResponse(throttle_time_ms=number))
                return
        raise AssertionError(f"{number} is not parked")

    def heartbeat(
        self, node: Node, request: HeartbeatRequest, context: RequestContext
    ) -> HeartbeatResponse | Pending[HeartbeatResponse] | None:
        number = request.generation_id
        if request.group_id == "hold" and self.line is not None and context.session.may_be_held:
            raise NotNow(self.line)
        self.session = context.session
        self.session.may_be_held = True
        self.seen.append(number)
        match request.group_id:
            case "park":
                pending = Pending[HeartbeatResponse]()
                pending.on_abandon(lambda: self.abandoned.append(number))
                self.parked.append((number, pending))
                return pending
            case "hold back":
                context.session.hold_back(HOLD_BACK_SECONDS)
            case "silence":
                return None
            case "refuse":
                raise RequestError(ErrorCode.REBALANCE_IN_PROGRESS)
            case "look":
                self.sent_bytes.append(node.metrics.sent_bytes.value)
            case "hang up":
                raise Unanswerable("on request")
            case "nonsense":
                return HeartbeatResponse(throttle_time_ms=2**40)
            case "bug":
                raise ZeroDivisionError("our own fault")
        return HeartbeatResponse(throttle_time_ms=number)

    async def list_groups(
        self, node: Node, request: ListGroupsRequest, context: RequestContext
    ) -> ListGroupsResponse:
        if self.gate is not None:
            await self.gate.wait()
        self.listed.append(context.connection_id)
        await Steps().did(self.elements)
        await trio.lowlevel.checkpoint()
        if request.states_filter:
            raise ZeroDivisionError("our own fault")
        return ListGroupsResponse(groups=())


class Serving:
    """The listener under test."""

    def __init__(self, connections: Connections, metrics: Metrics, script: Script) -> None:
        self.connections = connections
        self.metrics = metrics
        self.script = script
        self.address = ("127.0.0.1", 0)
        self.clients = list[Client]()

    async def connect(self, *, receive_buffer_bytes: int | None = None) -> "Client":
        client = trio.socket.socket()
        if receive_buffer_bytes is not None:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        try:
            await client.connect(self.address)
        except OSError:
            client.close()
            raise
        self.clients.append(Client(trio.SocketStream(client)))
        return self.clients[-1]


class Client:
    """One client that speaks in frames, or in any bytes."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.stream = stream
        self._received = bytearray()

    async def send(self, data: bytes) -> None:
        await self.stream.send_all(data)

    async def ask(self, what: str, number: int = 0) -> None:
        """Send a request whose answer is not waited for."""
        await self.send(request(what, number))

    async def read_frame(self) -> bytes:
        """The next answer. Raises `EOFError` when the connection was closed instead."""
        (length,) = struct.unpack(">i", await self._read(4))
        return await self._read(length)

    async def read_number(self) -> int:
        """Whose answer the next one is."""
        answer = decode_response(APIS[HEARTBEAT], 3, await self.read_frame())[1]
        assert isinstance(answer, HeartbeatResponse)
        assert answer.error_code == ErrorCode.NONE
        return answer.throttle_time_ms

    async def read_error(self) -> ErrorCode:
        answer = decode_response(APIS[HEARTBEAT], 3, await self.read_frame())[1]
        assert isinstance(answer, HeartbeatResponse)
        return ErrorCode(answer.error_code)

    async def is_closed(self) -> bool:
        """Whether the broker hung up, without a word."""
        try:
            with trio.fail_after(20):
                return await self.stream.receive_some(1) == b""
        except trio.BrokenResourceError:
            return True

    async def _read(self, size: int) -> bytes:
        while len(self._received) < size:
            part = await self.stream.receive_some()
            if not part:
                raise EOFError
            self._received += part
        data = bytes(self._received[:size])
        del self._received[:size]
        return data


def request(what: str, number: int = 0) -> bytes:
    message = HeartbeatRequest(group_id=what, generation_id=number, member_id="")
    return encode_request(message, 3, number, "test")


def encoded(message: Message, version: int) -> bytes:
    return encode_request(message, version, 7, "test")


@asynccontextmanager
async def open_serving(
    settings: BrokerSettings | None = None, *, wrap: Callable[[Connections], None] | None = None
) -> AsyncIterator[Serving]:
    """Serve as long as the block lasts. `wrap` may change the connections before."""
    settings = settings or BrokerSettings()
    script, turn, metrics = Script(), Turn(), Metrics(topics_max=10)
    # The dispatch itself needs no more of a node than these.
    quotas = SimpleNamespace(is_on=False)
    node = cast(Node, SimpleNamespace(metrics=metrics, settings=settings, quotas=quotas))
    timers = Timers(turn)
    reactor = Reactor(turn)
    handlers: dict[int, Handler] = {
        HEARTBEAT: script.heartbeat,
        LIST_GROUPS: script.list_groups,
        API_VERSIONS_KEY: api_versions.handle,
    }
    odd_events = OddEvents(logging.getLogger("test"))
    async with trio.open_nursery() as nursery:
        connections = Connections(
            settings=settings,
            reactor=reactor,
            turn=turn,
            dispatcher=Dispatcher(node, handlers, spawn=nursery.start_soon, odd_events=odd_events),
            metrics=metrics,
            odd_events=odd_events,
            timers=timers,
        )
        if wrap is not None:
            wrap(connections)
        serving = Serving(connections, metrics, script)
        bound = bind(settings.client_listeners()[0])
        connections.listen(bound)
        serving.address = socket_address(bound.socket)
        nursery.start_soon(reactor.run)
        nursery.start_soon(timers.run)
        nursery.start_soon(connections.sweep)
        try:
            yield serving
        finally:
            connections.close()
            for client in serving.clients:
                client.stream.socket.close()
            nursery.cancel_scope.cancel()


def socket_address(bound: socket.socket) -> tuple[str, int]:
    host, port = bound.getsockname()[:2]
    return host, port
