"""A call to an address, for a broker that does not know yet who is there."""

from __future__ import annotations

import ssl
from typing import Final, TypeVar

import trio
from trio.abc import Stream

from tidemark.broker.peers.calls import lost
from tidemark.broker.peers.connecting import connect
from tidemark.broker.peers.hello import HostPort, Refusal
from tidemark.broker.peers.peer_tls import PeerTls
from tidemark.broker.peers.tls_trouble import why_no_tls
from tidemark.broker.peers.versions import hello_of, with_what_to_do
from tidemark.protocol.errors import ErrorCode, MalformedMessage, ProtocolError, RequestError
from tidemark.protocol.frames import FrameDecoder
from tidemark.protocol.messages.peer.hello import HelloResponse
from tidemark.protocol.messages.peer.join import JoinRequest, JoinResponse
from tidemark.protocol.messages.peer.versions import (
    FIRST_VERSION,
    GREETING_VERSION,
    LAST_VERSION,
)
from tidemark.protocol.peer_frames import (
    decode_body,
    decode_peer_response_header,
    encode_peer_request,
)
from tidemark.protocol.schema import Message

M = TypeVar("M", bound=Message)

_ANSWER_BYTES_MAX: Final = 16 * 1024 * 1024
_READ_BYTES: Final = 64 * 1024
_ID: Final = 1


async def ask_to_join(
    address: HostPort, request: JoinRequest, tls: PeerTls | None = None
) -> JoinResponse:
    """Ask whoever is at `address`, once; how long that may take is the caller's to say.

    Raises `OSError` if nobody is there, `RequestError` if whoever is there hangs up, and
    `ProtocolError` if it does not speak as brokers do. One that has no version in common with this
    broker has refused, whether it says so or hangs up.
    """
    if tls is None:
        return await _ask(address, request, None)
    try:
        return await _ask(address, request, tls.value.dialing)
    except RequestError as error:
        if tls.value.is_required:
            raise
        try:
            return await _ask(address, request, None)
        except (ProtocolError, RequestError):
            raise error from None


async def _ask(address: HostPort, request: JoinRequest, tls: ssl.SSLContext | None) -> JoinResponse:
    """Whoever does not speak the oldest version, which nearly all do, may speak a newer one."""
    try:
        for version in range(FIRST_VERSION, LAST_VERSION + 1):
            answered = await _call(address, request, version, JoinResponse, tls)
            if answered.error_code != ErrorCode.INVALID_REQUEST:
                break
        return answered
    except RequestError:
        reason = await _why_hung_up(address, request, tls)
        if reason is None:
            raise
        return JoinResponse(
            error_code=int(ErrorCode.INVALID_REQUEST),
            error_message=with_what_to_do(reason),
        )


async def _why_hung_up(
    address: HostPort, request: JoinRequest, tls: ssl.SSLContext | None
) -> str | None:
    """What whoever is there says of versions; `None` if that is not it."""
    try:
        answered = await _call(address, hello_of(request), GREETING_VERSION, HelloResponse, tls)
    except (OSError, ProtocolError, RequestError):
        return None
    return answered.reason if answered.refusal == Refusal.VERSION else None


async def _call(
    address: HostPort,
    request: Message,
    version: int,
    answer_type: type[M],
    tls: ssl.SSLContext | None,
) -> M:
    connected = await connect([address])
    with connected:
        stream: Stream = trio.SocketStream(trio.socket.from_stdlib_socket(connected))
        parts = encode_peer_request(request, version, _ID)
        assert all(isinstance(part, bytes) for part in parts)
        try:
            if tls is not None:
                stream = trio.SSLStream(stream, tls, https_compatible=True)
                await stream.do_handshake()
            await stream.send_all(b"".join(parts))  # type: ignore[arg-type]  # as asserted
            frame = await _receive_frame(stream)
        except trio.BrokenResourceError as error:
            why = f"{address.host}:{address.port} has hung up"
            if isinstance(error.__cause__, ssl.SSLError):
                why += f": {why_no_tls(error.__cause__)}"
            elif tls is None:
                why += (
                    "; it may speak TLS (its peer.ssl.certificate.location), as this one does not"
                )
            raise lost(why) from error
    correlation_id, body = decode_peer_response_header(memoryview(frame))
    if correlation_id != _ID:
        raise MalformedMessage(f"an answer with correlation id {correlation_id}")
    return decode_body(answer_type, version, body)


async def _receive_frame(stream: Stream) -> bytes:
    decoder = FrameDecoder(_ANSWER_BYTES_MAX)
    while data := await stream.receive_some(_READ_BYTES):
        for frame in decoder.feed(data):
            return frame
    raise trio.BrokenResourceError
