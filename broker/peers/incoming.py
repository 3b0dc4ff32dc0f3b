"""A connection that another broker has opened: what it says, and what it is answered."""

from __future__ import annotations

import socket
import ssl
from typing import Protocol

import trio

from tidemark.broker.metrics.peer_counts import PeerEnd
from tidemark.broker.peers.calls import CALLS_MAX
from tidemark.broker.peers.decoding import decode
from tidemark.broker.peers.encoding import Frame
from tidemark.broker.peers.frame_socket import SocketServices
from tidemark.broker.peers.tls_frame_socket import open_frame_socket
from tidemark.partitions.replication.peer_messages import PeerMessage
from tidemark.protocol.errors import ErrorCode, MalformedMessage, ProtocolError
from tidemark.protocol.messages.peer.hello import HelloRequest, HelloResponse
from tidemark.protocol.messages.peer.join import JoinRequest
from tidemark.protocol.peer_frames import (
    PeerHeader,
    decode_body,
    decode_peer_header,
    encode_peer_response,
)
from tidemark.protocol.schema import Message
from tidemark.protocol.types import NodeId


class IncomingOwner(Protocol):
    """Who listens. All of it is called inside a turn."""

    def greeted(self, incoming: Incoming, hello: HelloRequest) -> HelloResponse:
        """Say whether the connection is taken; if it is, `accept` it first."""

    def received(self, incoming: Incoming, messages: list[PeerMessage]) -> None: ...

    def called(self, incoming: Incoming, header: PeerHeader, request: Message) -> None:
        """Answer with `incoming.answer`, once, whenever that may be."""

    def incoming_ended(self, incoming: Incoming, end: PeerEnd, reason: str) -> None: ...


class Incoming:
    """Before its Hello it may only ask to join."""

    __slots__ = ("_owner", "_socket", "calls", "identified", "incarnation", "node_id")

    def __init__(
        self,
        accepted: socket.socket,
        owner: IncomingOwner,
        services: SocketServices,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.node_id: NodeId | None = None
        """Of the broker that has opened it, once that is known."""
        self.incarnation = -1
        self.calls = 0
        """That are being answered."""
        self.identified = trio.Event()
        """Known who it is, or ended."""
        self._owner = owner
        self._socket = open_frame_socket(accepted, self, services, tls, has_dialed=False)

    @property
    def address(self) -> str:
        return self._socket.address

    @property
    def is_closed(self) -> bool:
        return self._socket.is_closed

    def accept(self, node_id: NodeId, incarnation: int, *, frame_bytes_max: int) -> None:
        """It is known who this is. Nothing is taken from it until `resume`."""
        self._socket.accept_frames(frame_bytes_max)
        self.node_id, self.incarnation = node_id, incarnation
        self.identified.set()
        self._socket.pause()

    def pause(self) -> None:
        self._socket.pause()

    def resume(self) -> None:
        self._socket.resume()

    def freeze(self) -> None:
        self._socket.freeze()

    def close(self, end: PeerEnd, reason: str) -> None:
        self._socket.close(end, reason)

    def refuse_input(self, error: ProtocolError) -> None:
        """A call that was taken turned out to be none."""
        self.calls -= 1
        self._socket.refuse_input(error)

    def answer(self, header: PeerHeader, response: Message) -> None:
        """Once for each call."""
        self.calls -= 1
        frame = _frame_of(response, header)
        if not self._socket.has_room_for_call(frame.size_bytes):
            assert header.api.response is not None
            refusal = header.api.response(
                error_code=int(ErrorCode.REQUEST_TIMED_OUT),
                error_message=f"it was answered, and {frame.size_bytes} bytes are too many to send",
            )
            frame = _frame_of(refusal, header)
        self._socket.send(frame)

    def take(self, frame: memoryview) -> None:
        header, body = decode_peer_header(frame)
        api = header.api
        if api.request is HelloRequest:
            self._greet(header, body)
        elif self.node_id is None and api.request is not JoinRequest:
            raise MalformedMessage(f"{api.name} before a Hello")
        elif api.response is None:
            self._owner.received(self, decode(header, body))
        elif self.calls == CALLS_MAX:
            raise MalformedMessage(f"more than {CALLS_MAX} calls at once")
        else:
            self.calls += 1
            self._owner.called(self, header, decode_body(api.request, header.body_version, body))

    def ended(self, end: PeerEnd, reason: str) -> None:
        self.identified.set()
        self._owner.incoming_ended(self, end, reason)

    def _greet(self, header: PeerHeader, body: memoryview) -> None:
        if self.node_id is not None:
            raise MalformedMessage("a second Hello")
        hello = decode_body(HelloRequest, header.version, body)
        response = self._owner.greeted(self, hello)
        self._say(response, header)
        if response.refusal:
            self._socket.send_rest()
            self.close(PeerEnd.REFUSED, response.reason)

    def _say(self, response: Message, header: PeerHeader) -> None:
        self._socket.send(_frame_of(response, header))


def _frame_of(response: Message, header: PeerHeader) -> Frame:
    encoded = encode_peer_response(response, header.body_version, header.correlation_id)
    return Frame.made_of(encoded, is_urgent=True)
