"""A connection that this broker has opened: what it says to another one, and the answers."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterable
from typing import Final, Protocol

import trio

from tidemark.broker.metrics.peer_counts import PeerEnd
from tidemark.broker.peers.calls import PendingCalls, lost
from tidemark.broker.peers.encoding import Frame, SharedFrames, encode
from tidemark.broker.peers.frame_socket import (
    CALLS_BYTES_MAX,
    SMALL_CALL_BYTES_MAX,
    SocketServices,
)
from tidemark.broker.peers.tls_frame_socket import open_frame_socket
from tidemark.partitions.replication.peer_messages import PeerMessage
from tidemark.protocol.errors import ErrorCode, MalformedMessage, RequestError, TidemarkError
from tidemark.protocol.messages.peer.hello import HelloRequest, HelloResponse
from tidemark.protocol.messages.peer.versions import GREETING_VERSION
from tidemark.protocol.peer_frames import (
    decode_body,
    decode_peer_response_header,
    encode_peer_request,
)
from tidemark.protocol.peer_registry import peer_api_of
from tidemark.protocol.schema import Message

_HELLO_ID: Final = 1


class OutgoingOwner(Protocol):
    """Who wants the connection."""

    def answered(self, outgoing: Outgoing, response: HelloResponse) -> None:
        """The Hello has been answered; the owner accepts the connection, or closes it."""

    def outgoing_ended(self, outgoing: Outgoing, end: PeerEnd, reason: str) -> None: ...


class Outgoing:
    """From its Hello on. Nothing else may be said before the answer to that is accepted."""

    __slots__ = (
        "_calls",
        "_frame_bytes_max",
        "_owner",
        "_socket",
        "end",
        "ended_event",
        "incarnation",
        "is_plain",
        "settled",
        "version",
    )

    def __init__(
        self,
        connected: socket.socket,
        hello: HelloRequest,
        owner: OutgoingOwner,
        services: SocketServices,
        *,
        frame_bytes_max: int,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.version = -1
        self.incarnation: int | None = None
        """Of the broker that has taken the connection; `None` until it has."""
        self.settled = trio.Event()
        """Taken, or ended."""
        self.ended_event = trio.Event()
        self.is_plain = tls is None
        self.end: PeerEnd | None = None
        """Why it has ended."""
        self._owner = owner
        self._frame_bytes_max = frame_bytes_max
        self._calls = PendingCalls()
        self._socket = open_frame_socket(connected, self, services, tls, has_dialed=True)
        self._say(hello, GREETING_VERSION, _HELLO_ID)

    @property
    def address(self) -> str:
        return self._socket.address

    @property
    def is_accepted(self) -> bool:
        return self.incarnation is not None and not self._socket.is_closed

    @property
    def unsent_bytes(self) -> int:
        return self._socket.unsent_bytes

    def accept(self, version: int, incarnation: int) -> None:
        """The other side is who it should be."""
        self._socket.accept_frames(self._frame_bytes_max)
        self.version, self.incarnation = version, incarnation
        self.settled.set()

    def send(self, messages: Iterable[PeerMessage], shared: SharedFrames) -> None:
        for frame in encode(messages, self.version, shared):
            self._socket.send(frame)

    async def call(self, request: Message) -> Message:
        """Raises `RequestError` (NETWORK_EXCEPTION) when the connection ends before the answer.

        Waits while the other side has `CALLS_MAX` to answer. Cancelled after that, it leaves the
        call to be done there, and its answer to nobody. Raises INVALID_REQUEST for one that is
        larger than brokers send each other.
        """
        assert self.is_accepted
        correlation_id, call = await self._calls.begin(peer_api_of(type(request)), self.version)
        try:
            self._say_call(request, correlation_id)
        except TidemarkError:
            self._calls.give_up(correlation_id)
            raise
        return await call.wait()

    def close(self, end: PeerEnd, reason: str) -> None:
        self._socket.close(end, reason)

    def freeze(self) -> None:
        self._socket.freeze()

    def take(self, frame: memoryview) -> None:
        correlation_id, body = decode_peer_response_header(frame)
        if self.incarnation is not None:
            self._calls.settle(correlation_id, body)
            return
        if correlation_id != _HELLO_ID:
            raise MalformedMessage("something else than the answer to a Hello")
        response = decode_body(HelloResponse, GREETING_VERSION, body)
        self._owner.answered(self, response)

    def ended(self, end: PeerEnd, reason: str) -> None:
        self.end = end
        self.settled.set()
        self.ended_event.set()
        self._calls.fail_all(f"the connection to the other broker was lost: {reason}")
        self._owner.outgoing_ended(self, end, reason)

    def _say_call(self, request: Message, correlation_id: int) -> None:
        encoded = encode_peer_request(request, self.version, correlation_id)
        size = sum(map(len, encoded))
        if size > min(self._frame_bytes_max, CALLS_BYTES_MAX):
            raise RequestError(
                ErrorCode.INVALID_REQUEST,
                f"{size} bytes are more than one broker asks another at once: ask for less, or the "
                "broker that leads the metadata",
            )
        if not self._socket.has_room_for_call(size):
            raise lost(f"{size} bytes more than there are on their way to the other broker")
        # Larger ones go behind records that came before them.
        self._socket.send(Frame.made_of(encoded, is_urgent=size <= SMALL_CALL_BYTES_MAX))

    def _say(self, request: Message, version: int, correlation_id: int) -> None:
        encoded = encode_peer_request(request, version, correlation_id)
        self._socket.send(Frame.made_of(encoded, is_urgent=True))
