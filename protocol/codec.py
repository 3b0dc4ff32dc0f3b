"""The one way in and out: a message and a version to bytes, and back.

Codecs are compiled when a version of a message is first used, and kept. Everything that is wrong
with bytes is a `MalformedMessage`, and so is a message that its version cannot say.

Most messages go through construct. Those that carry the load, or an entry for each of thousands of
partitions, say so and go through a codec that is generated from the same declaration: decoding a
Fetch of one partition takes it a seventh of the time.
"""

from typing import Any, Final, Protocol, TypeVar

from tidemark.protocol.errors import MalformedMessage
from tidemark.protocol.primitives import ELEMENTS_UNLIMITED, Chunk
from tidemark.protocol.schema.construct_codec import ConstructCodec
from tidemark.protocol.schema.declaration import Message
from tidemark.protocol.schema.straight_line import StraightLineCodec
from tidemark.protocol.schema.wire_types import SizedRecords

M = TypeVar("M", bound=Message)
_IN_MEMORY: Final = (bytes, bytearray, memoryview)


class Codec(Protocol[M]):
    """One version of one message."""

    def decode(self, data: memoryview, at: int = 0, elements_max: int = ELEMENTS_UNLIMITED) -> M:
        """The message that begins at `at`."""
        ...

    def encode(self, message: M) -> list[Chunk]: ...


_CODECS: Final[dict[tuple[type[Message], int], Codec[Any]]] = {}  # Any: of the key's message


def encode(message: Message, version: int) -> bytes:
    """`message` as bytes, without a header. Its records must be in memory."""
    # Looking at each chunk would take half of the time: for others than bytes, `join` raises.
    return b"".join(encode_chunks(message, version))  # type: ignore[arg-type]  # the line above


def encode_chunks(message: Message, version: int) -> list[Chunk]:
    """`message` in as many pieces as its encoder made; for those who join them later."""
    codec = _CODECS.get((type(message), version)) or codec_of(type(message), version)
    return codec.encode(message)


def decode(
    cls: type[M],
    version: int,
    data: bytes | memoryview,
    *,
    elements_max: int = ELEMENTS_UNLIMITED,
) -> M:
    """The message at the start of `data`.

    What follows it is ignored: some clients send more than they should (librdkafka does, with
    Metadata 9). Records are views into `data`; everything else is copied out of it.

    `elements_max` is for messages of strangers: how many elements all arrays and tagged sections
    may have together. Each becomes an object, a hundred times its size if it is empty.
    """
    codec: Codec[M] = _CODECS.get((cls, version)) or codec_of(cls, version)
    return codec.decode(memoryview(data), 0, elements_max)


def codec_of(cls: type[M], version: int) -> Codec[M]:
    """The codec of one version, compiled on first use."""
    codec = _CODECS.get((cls, version))
    if codec is None:
        if not cls.first_version <= version <= cls.last_version:
            raise MalformedMessage(f"{cls.__name__} has no version {version}")
        make = StraightLineCodec if cls.straight_line else ConstructCodec
        codec = _CODECS[cls, version] = make(cls, version)
    return codec


def join_chunks(chunks: list[Chunk]) -> list[bytes | SizedRecords]:
    """Join what is in memory, and leave what is not between it."""
    parts: list[bytes | SizedRecords] = []
    run: list[bytes | bytearray | memoryview] = []
    for chunk in chunks:
        if isinstance(chunk, _IN_MEMORY):
            run.append(chunk)
            continue
        if run:
            parts.append(b"".join(run))
            run = []
        parts.append(chunk)
    if run:
        parts.append(b"".join(run))
    return parts
