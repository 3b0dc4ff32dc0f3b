"""A codec that construct compiles from a declaration."""

import struct
from typing import Generic, TypeVar

from tidemark.protocol.construct_library import ConstructError
from tidemark.protocol.errors import MalformedMessage
from tidemark.protocol.primitives import ELEMENTS_UNLIMITED, Chunk, Reader, Writer
from tidemark.protocol.schema.constructs import struct_construct
from tidemark.protocol.schema.declaration import Message

M = TypeVar("M", bound=Message)


class ConstructCodec(Generic[M]):
    """One version of one message, by construct."""

    def __init__(self, cls: type[M], version: int) -> None:
        self._what = f"{cls.__name__} {version}"
        self._construct = struct_construct(
            cls, version, flexible=cls.is_flexible(version)
        ).compile()

    def decode(self, data: memoryview, at: int = 0, elements_max: int = ELEMENTS_UNLIMITED) -> M:
        reader = Reader(data[at:], elements_max=elements_max)
        try:
            message: M = self._construct.parse_stream(reader)
        except (ConstructError, struct.error, UnicodeError) as error:
            raise MalformedMessage(f"{self._what}: {error}") from error
        except MalformedMessage as error:
            raise MalformedMessage(f"{self._what}: {error}") from None
        return message

    def encode(self, message: M) -> list[Chunk]:
        writer = Writer()
        try:
            self._construct.build_stream(message, writer)
        except (ConstructError, struct.error, UnicodeError) as error:
            raise MalformedMessage(f"{self._what}: {error}") from error
        except MalformedMessage as error:
            raise MalformedMessage(f"{self._what}: {error}") from None
        return writer.chunks
