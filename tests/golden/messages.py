"""The bytes of two examples of every version of every message, kept in `messages.json`.

A *full* example has a different value in every field; a *bare* one has nothing in any field that
may be null, empty or absent. Both follow from the declarations, so the file holds bytes only.

After a message or a version is added: `python -m tests.golden.messages`. A line that changes,
rather than appears, is a change of the protocol: it must be explained.
"""

import json
from itertools import count
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

from tests.protocol.values import every_version
from tidemark.protocol import codec
from tidemark.protocol.schema.declaration import Struct, WireField
from tidemark.protocol.schema.wire_types import (
    BYTES,
    RECORDS,
    STRING,
    UUID16,
    Array,
    Nested,
    Scalar,
    WireType,
)

S = TypeVar("S", bound=Struct)

FILE = Path(__file__).with_name("messages.json")


class FullExample:
    """Numbers count up from 1, so that no two neighbours could be swapped unseen."""

    def __init__(self, version: int) -> None:
        self._version = version
        self._numbers = count(1)

    def struct(self, cls: type[S]) -> S:
        return cls(
            **{
                field.name: self._value(field.type, field.name)
                for field in cls.wire_fields
                if field.exists_in(self._version)
            }
        )

    def _value(self, wire_type: WireType[Any], name: str) -> object:  # Any: each is looked at
        match wire_type:
            case Scalar(format="?"):
                return True
            case Scalar():
                return next(self._numbers)
            case Array(element=element):
                return (self._value(element, name), self._value(element, name))
            case Nested(struct=struct):
                return self.struct(struct)
        if wire_type == UUID16:
            return UUID(int=next(self._numbers))
        assert wire_type in (STRING, BYTES, RECORDS)
        return name if wire_type == STRING else name.encode()


class BareExample:
    def __init__(self, version: int) -> None:
        self._version = version

    def struct(self, cls: type[S]) -> S:
        return cls(
            **{
                field.name: self._value(field)
                for field in cls.wire_fields
                if field.exists_in(self._version)
            }
        )

    def _value(self, field: WireField) -> object:
        if field.tag is not None:
            return field.default
        if field.nullable_in(self._version):
            return None
        match field.type:
            case Array():
                return ()
            case Nested(struct=struct):
                return self.struct(struct)
            case Scalar(format="?"):
                return False
            case Scalar():
                return 0
        empty: dict[WireType[Any], object] = {  # Any: of any of these types
            UUID16: UUID(int=0),
            STRING: "",
            BYTES: b"",
            RECORDS: b"",
        }
        return empty[field.type]


def regenerate() -> None:
    lines = []
    for cls, version in every_version():
        examples = (FullExample(version).struct(cls), BareExample(version).struct(cls))
        encoded = [codec.encode(example, version).hex() for example in examples]
        lines.append(f'"{cls.__name__} {version}": {json.dumps(encoded)}')
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    regenerate()
