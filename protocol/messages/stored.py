"""Messages as records keep them: an int16 version, then the encoding at that version."""

from struct import Struct as Packer
from typing import Final, TypeVar

from tidemark.protocol import codec
from tidemark.protocol.errors import MalformedMessage
from tidemark.protocol.schema import Message

M = TypeVar("M", bound=Message)

_VERSION: Final = Packer(">h")


def encode_record(message: Message, version: int) -> bytes:
    """A key or a value as it is stored."""
    return _VERSION.pack(version) + codec.encode(message, version)


def decode_value(cls: type[M], data: bytes | memoryview) -> M:
    """What was stored; raises `MalformedMessage` for a version that is not known."""
    version, encoded = split_version(data)
    return codec.decode(cls, version, encoded)


def split_version(data: bytes | memoryview) -> tuple[int, bytes | memoryview]:
    """The version, and what is encoded at it. Raises `MalformedMessage` if there is none."""
    if len(data) < _VERSION.size:
        raise MalformedMessage("a stored message without a version")
    version: int = _VERSION.unpack_from(data)[0]
    if version < 0:
        raise MalformedMessage(f"version {version} of a stored message")
    return version, data[_VERSION.size :]
