"""A codec that is generated from a declaration: the same bytes as construct's, much sooner.

It can be made for any message. It is used where construct's microseconds would be most of the
request, or would be spent on thousands of entries; tagged fields, which are rare, stay construct's.
"""

import struct
from collections.abc import Callable
from typing import Generic, TypeAlias, TypeVar

from tidemark.protocol.construct_library import ConstructError
from tidemark.protocol.errors import MalformedMessage
from tidemark.protocol.primitives import ELEMENTS_UNLIMITED, Chunk
from tidemark.protocol.schema.declaration import Message
from tidemark.protocol.schema.decoder_source import decoder_source
from tidemark.protocol.schema.encoder_source import encoder_source

M = TypeVar("M", bound=Message)

_Decode: TypeAlias = Callable[[memoryview, int, int, int], M]


class StraightLineCodec(Generic[M]):
    """One version of one message, by generated source."""

    def __init__(self, cls: type[M], version: int) -> None:
        self._what = f"{cls.__name__} {version}"
        self._decode: _Decode[M] = decoder_source(cls, version).function()
        self._encode: Callable[[M], list[Chunk]] = encoder_source(cls, version).function()

    def decode(self, data: memoryview, at: int = 0, elements_max: int = ELEMENTS_UNLIMITED) -> M:
        try:
            return self._decode(data, at, len(data), elements_max)
        except (struct.error, IndexError, UnicodeError, ConstructError) as error:
            raise MalformedMessage(f"{self._what}: {error}") from error
        except MalformedMessage as error:
            raise MalformedMessage(f"{self._what}: {error}") from None

    def encode(self, message: M) -> list[Chunk]:
        try:
            return self._encode(message)
        except (struct.error, UnicodeError, ConstructError) as error:
            raise MalformedMessage(f"{self._what}: {error}") from error
        except MalformedMessage as error:
            raise MalformedMessage(f"{self._what}: {error}") from None
