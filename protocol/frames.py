"""Frames and headers: what is around a message on a connection.

```
request    00 00 00 15 | 00 12 | 00 03 | 00 00 00 07 | 00 02 'm' 'e' | 00       | body
           length        key     version correlation   client id       no tags
response   00 00 00 0b | 00 00 00 07 | 00      | body
           length        correlation   no tags
```

The tagged fields are there in flexible versions only, and never in a response of ApiVersions. The
client id has a two-byte length in all of them.
"""

from struct import Struct
from struct import error as StructError
from typing import Final, NamedTuple

from tidemark.protocol.codec import Codec, codec_of, decode, encode_chunks, join_chunks
from tidemark.protocol.errors import FrameTooLarge, MalformedMessage, UnsupportedVersion
from tidemark.protocol.primitives import Reader, read_uvarint
from tidemark.protocol.registry import APIS, Api, api_of
from tidemark.protocol.schema.declaration import Message
from tidemark.protocol.schema.wire_types import SizedRecords

_LENGTH: Final = Struct(">i")
_REQUEST: Final = Struct(">hhih")  # key, version, correlation id, length of the client id
_REQUEST_FRAME: Final = Struct(">ihhih")
_REQUEST_START: Final = Struct(">hhi")
_CORRELATION: Final = Struct(">i")
_RESPONSE_FRAME: Final = Struct(">ii")
_NO_TAGS: Final = b"\x00"
# None is known, and skipping takes time.
_HEADER_TAGS_MAX: Final = 1_000


class FrameDecoder:
    """Cuts a stream of bytes into frames, wherever the stream was split.

    Invariant: between calls, less than one frame is kept.
    """

    __slots__ = ("_buffer", "_frame_bytes_max")

    def __init__(self, frame_bytes_max: int) -> None:
        self._buffer = bytearray()
        self._frame_bytes_max = frame_bytes_max

    def feed(self, data: bytes | bytearray | memoryview) -> list[bytes]:
        """The frames that `data` completes, without their lengths.

        Raises `FrameTooLarge` on a length that is negative or beyond the limit, before any of
        that frame is kept; nothing that was read afterwards could be told apart.
        """
        buffer = self._buffer
        buffer += data
        frames: list[bytes] = []
        at, end = 0, len(buffer)
        while end - at >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(buffer, at)
            if not 0 <= length <= self._frame_bytes_max:
                raise FrameTooLarge(length, self._frame_bytes_max)
            following = at + _LENGTH.size + length
            if following > end:
                break
            frames.append(bytes(memoryview(buffer)[at + _LENGTH.size : following]))
            at = following
        del buffer[:at]
        return frames


class RequestHeader(NamedTuple):
    """What every request begins with."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None


def decode_request_header(frame: bytes | memoryview) -> tuple[RequestHeader, int]:
    """The header of a request, and where its body begins.

    Raises `UnsupportedVersion`, with the correlation id, for an API that is not in the registry or
    a version that is not spoken: how such a header goes on is not known.
    """
    try:
        key, version, correlation_id, client_id_bytes = _REQUEST.unpack_from(frame)
    except StructError:
        return _decode_short_header(frame)
    api = APIS.get(key)
    if api is None or not api.speaks(version):
        raise UnsupportedVersion(key, version, correlation_id)
    client_id, at = _decode_client_id(memoryview(frame), client_id_bytes)
    if api.is_flexible(version):
        at = _skip_tags(frame, at)
    return RequestHeader(key, version, correlation_id, client_id), at


def encode_request(
    message: Message, version: int, correlation_id: int, client_id: str | None
) -> bytes:
    """A request as one frame, with its length."""
    api = api_of(type(message))
    name = b"" if client_id is None else client_id.encode()
    name_bytes = -1 if client_id is None else len(name)
    tags = _NO_TAGS if api.is_flexible(version) else b""
    chunks = encode_chunks(message, version)
    length = _REQUEST.size + len(name) + len(tags) + sum(map(len, chunks))
    head = _REQUEST_FRAME.pack(length, api.key, version, correlation_id, name_bytes)
    return b"".join((head, name, tags, *chunks))  # type: ignore[arg-type]  # all are in memory


def encode_response(
    message: Message, api: Api, version: int, correlation_id: int
) -> list[bytes | SizedRecords]:
    """A response as one frame, with its length; records that are not in memory stay apart."""
    return ApiCodec(api, version).encode_response(message, correlation_id)


class ApiCodec:
    """One version of one API, its codecs looked up once for all of its requests."""

    __slots__ = ("_requests", "_response_tags", "_responses", "api", "is_flexible", "version")

    def __init__(self, api: Api, version: int) -> None:
        """Compiles both codecs, if nothing has used them before."""
        self.api = api
        self.version = version
        self._requests: Codec[Message] = codec_of(api.request, version)
        self._responses: Codec[Message] = codec_of(api.response, version)
        self.is_flexible = api.is_flexible(version)
        self._response_tags = _NO_TAGS if api.response_header_is_flexible(version) else b""

    def decode_request(
        self, frame: memoryview, elements_max: int
    ) -> tuple[int, str | None, Message]:
        """The correlation id, the client id and the message of a frame of this API and version."""
        try:
            _, _, correlation_id, client_id_bytes = _REQUEST.unpack_from(frame)
        except StructError:
            raise MalformedMessage(f"a request of {len(frame)} bytes") from None
        client_id, at = _decode_client_id(frame, client_id_bytes)
        if self.is_flexible:
            at = _skip_tags(frame, at)
        return correlation_id, client_id, self._requests.decode(frame, at, elements_max)

    def encode_request_body(self, message: Message) -> bytes:
        """What follows the header; the records have to be in memory."""
        return b"".join(self._requests.encode(message))  # type: ignore[arg-type]  # the line above

    def encode_response(self, message: Message, correlation_id: int) -> list[bytes | SizedRecords]:
        """As the function of this name does."""
        chunks = self._responses.encode(message)
        tags = self._response_tags
        try:
            body = b"".join(chunks)  # type: ignore[arg-type]  # or else a TypeError
        except TypeError:
            length = _CORRELATION.size + len(tags) + sum(map(len, chunks))
            return join_chunks([_RESPONSE_FRAME.pack(length, correlation_id), tags, *chunks])
        length = _CORRELATION.size + len(tags) + len(body)
        return [_RESPONSE_FRAME.pack(length, correlation_id) + tags + body]


def decode_response(api: Api, version: int, frame: bytes | memoryview) -> tuple[int, Message]:
    """The correlation id and the message of a response frame, which comes without its length."""
    correlation_id = decode_correlation_id(frame)
    at = _CORRELATION.size
    if api.response_header_is_flexible(version):
        at = _skip_tags(frame, at)
    return correlation_id, decode(api.response, version, memoryview(frame)[at:])


def decode_correlation_id(frame: bytes | memoryview) -> int:
    """Which request a response frame answers; with it the client knows how to read the rest."""
    if len(frame) < _CORRELATION.size:
        raise MalformedMessage(f"a response of {len(frame)} bytes")
    correlation_id: int = _CORRELATION.unpack_from(frame)[0]
    return correlation_id


def _decode_short_header(frame: bytes | memoryview) -> tuple[RequestHeader, int]:
    """A frame that ends before its client id: never a request, but perhaps an unknown one."""
    if len(frame) < _REQUEST_START.size:
        raise MalformedMessage(f"a request of {len(frame)} bytes")
    key, version, correlation_id = _REQUEST_START.unpack_from(frame)
    api = APIS.get(key)
    if api is None or not api.speaks(version):
        raise UnsupportedVersion(key, version, correlation_id)
    raise MalformedMessage(f"a request of {len(frame)} bytes")


def _decode_client_id(frame: memoryview, size_bytes: int) -> tuple[str | None, int]:
    """The client id of a request's header, whose length has been read, and where it ends."""
    at = _REQUEST.size
    end = at + size_bytes
    if at <= end <= len(frame):
        try:
            return frame[at:end].tobytes().decode(), end
        except UnicodeDecodeError as error:
            raise MalformedMessage(f"a client id that is not UTF-8: {error}") from error
    if size_bytes == -1:
        return None, at
    raise MalformedMessage(f"a client id of {size_bytes} bytes in a frame of {len(frame)}")


def _skip_tags(frame: bytes | memoryview, at: int) -> int:
    """Where the header's tagged fields end; none is known, so all are skipped."""
    if at < len(frame) and frame[at] == 0:
        return at + 1
    reader = Reader(memoryview(frame)[at:])
    count = read_uvarint(reader)
    if count > _HEADER_TAGS_MAX:
        raise MalformedMessage(f"{count} tagged fields in a header")
    for _ in range(count):
        read_uvarint(reader)
        reader.view(read_uvarint(reader))
    return len(frame) - reader.remaining
