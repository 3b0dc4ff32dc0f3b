"""What an encoder that `encoder_source` writes calls, for what is rare or longer than a line."""

from typing import NoReturn

from tidemark.protocol.errors import MalformedMessage
from tidemark.protocol.primitives import (
    STRING_BYTES_MAX,
    Chunk,
    Writer,
    encode_uvarint,
    refuse_string,
)
from tidemark.protocol.schema.constructs import TaggedFields
from tidemark.protocol.schema.declaration import Struct

UVARINTS = [bytes((length + 1,)) for length in range(127)] + [b"\x00"]
"""Compact lengths of one byte, by length; the last, which is also at -1, is null."""


def encode_string_length(length_and_one: int) -> bytes:
    if length_and_one > STRING_BYTES_MAX + 1:
        refuse_string(length_and_one - 1)
    return encode_uvarint(length_and_one)


def unsayable(struct: Struct, name: str) -> NoReturn:
    raise MalformedMessage(f"{type(struct).__name__}.{name} is set, and this version cannot say it")


def unsayable_null() -> NoReturn:
    raise MalformedMessage("a null where this version must have a value")


def write_tags(known: TaggedFields, struct: Struct, out: list[Chunk]) -> None:
    writer = Writer()
    known._build(struct, writer, None, "")
    out += writer.chunks
