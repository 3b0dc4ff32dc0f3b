"""A call to an address, for a broker that does not know yet who is there."""

from __future__ import annotations

from typing import Final, TypeVar

import trio

from tidemark.broker.peers.calls import lost
from tidemark.broker.peers.dialing import connect
from tidemark.broker.peers.hello import HostPort
from tidemark.protocol.errors import MalformedMessage
from tidemark.protocol.frames import FrameDecoder
from tidemark.protocol.peer_frames import (
    decode_body,
    decode_peer_response_header,
    encode_peer_request,
)
from tidemark.protocol.peer_registry import FIRST_VERSION
from tidemark.protocol.schema import Message

M = TypeVar("M", bound=Message)

_ANSWER_BYTES_MAX: Final = 16 * 1024 * 1024
_READ_BYTES: Final = 64 * 1024
_ID: Final = 1


async def call_address(address: HostPort, request: Message, answer_type: type[M]) -> M:
    """Ask whoever is at `address`, once; how long that may take is the caller's to say.

    Raises `OSError` if nobody is there, `RequestError` if whoever is there hangs up, and
    `ProtocolError` if it does not speak as brokers do.
    """
    connected = await connect([address])
    with connected:
        stream = trio.SocketStream(trio.socket.from_stdlib_socket(connected))
        parts = encode_peer_request(request, FIRST_VERSION, _ID)
        assert all(isinstance(part, bytes) for part in parts)
        try:
            await stream.send_all(b"".join(parts))  # type: ignore[arg-type]  # the line above
            frame = await _receive_frame(stream)
        except trio.BrokenResourceError as error:
            raise lost(f"{address.host}:{address.port} has hung up") from error
    correlation_id, body = decode_peer_response_header(memoryview(frame))
    if correlation_id != _ID:
        raise MalformedMessage(f"an answer with correlation id {correlation_id}")
    return decode_body(answer_type, FIRST_VERSION, body)


async def _receive_frame(stream: trio.SocketStream) -> bytes:
    decoder = FrameDecoder(_ANSWER_BYTES_MAX)
    while data := await stream.receive_some(_READ_BYTES):
        for frame in decoder.feed(data):
            return frame
    raise trio.BrokenResourceError
