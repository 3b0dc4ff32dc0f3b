"""Random messages, made from the declarations themselves."""

import os
from collections.abc import Iterator
from typing import Any
from uuid import UUID

from hypothesis import settings
from hypothesis import strategies as st

from tidemark.protocol.messages import consumer_offsets
from tidemark.protocol.registry import APIS
from tidemark.protocol.schema.declaration import Message, Struct, WireField
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

# A few examples of every version find what is wrong with a declaration; a thousand of each are for
# a night (TIDEMARK_PROTOCOL_EXAMPLES=1000).
A_FEW = settings(max_examples=int(os.environ.get("TIDEMARK_PROTOCOL_EXAMPLES", "5")))

API_MESSAGES: list[type[Message]] = [
    cls for api in APIS.values() for cls in (api.request, api.response)
]
STORED_MESSAGES: list[type[Message]] = [
    consumer_offsets.OffsetCommitKey,
    consumer_offsets.OffsetCommitValue,
    consumer_offsets.GroupMetadataKey,
    consumer_offsets.GroupMetadataValue,
]
MESSAGES = API_MESSAGES + STORED_MESSAGES

_INTEGER_BITS = {"b": 8, "h": 16, "l": 32, "q": 64}
_TEXT = st.text(max_size=4) | st.sampled_from(["", "x" * 126, "x" * 127, "\N{WAVE DASH}" * 100])


def versions_of(cls: type[Message]) -> range:
    return range(cls.first_version, cls.last_version + 1)


def every_version() -> Iterator[tuple[type[Message], int]]:
    for cls in MESSAGES:
        for version in versions_of(cls):
            yield cls, version


def structs(cls: type[Struct], version: int) -> st.SearchStrategy[Any]:  # Any: an instance of cls
    """Instances of `cls` that `version` can say."""
    return st.builds(
        cls,
        **{
            field.name: _field_values(field, version)
            for field in cls.wire_fields
            if field.exists_in(version)
        },
    )


def _field_values(field: WireField, version: int) -> st.SearchStrategy[Any]:  # Any: as typed
    values = _values(field.type, version)
    if field.tag is not None:
        values = st.just(field.default) | values
    return st.none() | values if field.nullable_in(version) else values


def _values(wire_type: WireType[Any], version: int) -> st.SearchStrategy[Any]:  # Any: as typed
    match wire_type:
        case Scalar(format="?"):
            return st.booleans()
        case Scalar(format="d"):
            return st.floats(allow_nan=False)
        case Scalar(format=format):
            half = 1 << (_INTEGER_BITS[format.lower()] - 1)
            return (
                st.integers(0, 2 * half - 1) if format.isupper() else st.integers(-half, half - 1)
            )
        case Array(element=element):
            return st.lists(_values(element, version), max_size=2).map(tuple)
        case Nested(struct=struct):
            return structs(struct, version)
    simple: dict[WireType[Any], st.SearchStrategy[Any]] = {  # Any: as typed
        STRING: _TEXT,
        BYTES: st.binary(max_size=4),
        RECORDS: st.binary(max_size=200),
        UUID16: st.integers(0, 2**128 - 1).map(lambda number: UUID(int=number)),
    }
    return simple[wire_type]
