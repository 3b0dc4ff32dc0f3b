"""Frames between brokers: Kafka's, with the shortest of its request headers.

```
request    00 00 00 0c | 27 1a | 00 01 | 00 00 00 00 | body
           length        key     version correlation
response   00 00 00 09 | 00 00 00 07 | body
           length        correlation
```

One-way messages have correlation id 0, calls a positive one. A response goes back on the
connection by which its request came, and is of the request's version.

A Hello always has version 1, a Join that of its sender: `messages/peer/versions.py` says why.
"""

from struct import Struct
from typing import Final, NamedTuple, TypeVar

from tidemark.protocol.codec import decode, encode_chunks
from tidemark.protocol.errors import MalformedMessage, UnsupportedVersion
from tidemark.protocol.messages.peer.hello import HelloRequest
from tidemark.protocol.messages.peer.join import JoinRequest
from tidemark.protocol.messages.peer.versions import (
    FIRST_VERSION,
    GREETING_VERSION,
    LAST_VERSION,
)
from tidemark.protocol.peer_registry import PEER_APIS, PeerApi, peer_api_of
from tidemark.protocol.primitives import Chunk
from tidemark.protocol.schema.declaration import Message
from tidemark.protocol.schema.wire_types import SizedRecords

M = TypeVar("M", bound=Message)

_REQUEST: Final = Struct(">hhi")
_REQUEST_FRAME: Final = Struct(">ihhi")
_CORRELATION: Final = Struct(">i")
_RESPONSE_FRAME: Final = Struct(">ii")
ONE_WAY: Final = 0
# Record batches of this size are not copied to be joined with what is around them.
_APART_BYTES: Final = 32 * 1024
# A strange frame of a megabyte may hold a million elements of a byte, each of which is an object.
_ELEMENTS_MAX: Final = 1_000_000


class PeerHeader(NamedTuple):
    """What every frame but a response begins with."""

    api: PeerApi
    version: int
    correlation_id: int

    @property
    def body_version(self) -> int:
        """Of the body, and of the answer's."""
        return GREETING_VERSION if self.api.request is JoinRequest else self.version


def decode_peer_header(frame: memoryview) -> tuple[PeerHeader, memoryview]:
    """The header of a frame, and its body.

    Raises `UnsupportedVersion` for a key or a version that is not spoken between brokers; a Join
    may have any.
    """
    if len(frame) < _REQUEST.size:
        raise MalformedMessage(f"a frame of {len(frame)} bytes")
    key, version, correlation_id = _REQUEST.unpack_from(frame)
    api = PEER_APIS.get(key)
    if api is None or not _is_readable(api, version):
        raise UnsupportedVersion(key, version, correlation_id)
    if (correlation_id > ONE_WAY) != (api.response is not None):
        raise MalformedMessage(f"{api.name} with correlation id {correlation_id}")
    return PeerHeader(api, version, correlation_id), frame[_REQUEST.size :]


def is_spoken(version: int) -> bool:
    return FIRST_VERSION <= version <= LAST_VERSION


def _is_readable(api: PeerApi, version: int) -> bool:
    if api.request is HelloRequest:
        return version == GREETING_VERSION
    return api.request is JoinRequest or is_spoken(version)


def decode_body(cls: type[M], version: int, body: bytes | memoryview) -> M:
    return decode(cls, version, body, elements_max=_ELEMENTS_MAX)


def encode_peer_request(
    message: Message, version: int, correlation_id: int = ONE_WAY
) -> list[bytes | SizedRecords]:
    """A frame with its length. Large record batches, and those in files, are parts of their own."""
    chunks = encode_chunks(message, version)
    length = _REQUEST.size + sum(map(len, chunks))
    key = peer_api_of(type(message)).key
    return _joined([_REQUEST_FRAME.pack(length, key, version, correlation_id), *chunks])


def encode_peer_response(
    message: Message, version: int, correlation_id: int
) -> list[bytes | SizedRecords]:
    chunks = encode_chunks(message, version)
    length = _CORRELATION.size + sum(map(len, chunks))
    return _joined([_RESPONSE_FRAME.pack(length, correlation_id), *chunks])


def decode_peer_response_header(frame: memoryview) -> tuple[int, memoryview]:
    """Which call a response answers, and its body."""
    if len(frame) < _CORRELATION.size:
        raise MalformedMessage(f"a response of {len(frame)} bytes")
    correlation_id: int = _CORRELATION.unpack_from(frame)[0]
    return correlation_id, frame[_CORRELATION.size :]


def _joined(chunks: list[Chunk]) -> list[bytes | SizedRecords]:
    """The same bytes in few parts. What is not `bytes` belongs to somebody, and is copied."""
    parts: list[bytes | SizedRecords] = []
    run: list[bytes | bytearray | memoryview] = []
    for chunk in chunks:
        if isinstance(chunk, bytearray | memoryview) or (
            isinstance(chunk, bytes) and len(chunk) < _APART_BYTES
        ):
            run.append(chunk)
            continue
        if run:
            parts.append(b"".join(run))
            run = []
        parts.append(chunk)
    if run:
        parts.append(b"".join(run))
    return parts
