"""Random messages, made from the declarations themselves.

hypothesis draws a seed and `RandomValues` makes the message: there are hundreds of versions of
messages with dozens of fields, and drawing each field would take minutes.
"""

import os
from collections.abc import Iterator
from random import Random
from typing import Any, Final, TypeVar
from uuid import UUID

from hypothesis import settings
from hypothesis import strategies as st

from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.messages import consumer_group_records, consumer_offsets, transaction_state
from tidemark.protocol.peer_registry import PEER_APIS
from tidemark.protocol.registry import APIS
from tidemark.protocol.schema.declaration import Message, Struct, WireField
from tidemark.protocol.schema.wire_types import (
    BYTES,
    INT64,
    RECORDS,
    STRING,
    UUID16,
    Array,
    Nested,
    Scalar,
    WireType,
)

S = TypeVar("S", bound=Struct)

# A few examples of every version find what is wrong with a declaration; a thousand of each are for
# a night (TIDEMARK_PROTOCOL_EXAMPLES=1000).
A_FEW: Final = settings(max_examples=int(os.environ.get("TIDEMARK_PROTOCOL_EXAMPLES", "6")))

KAFKA_APIS: Final = [api for api in APIS.values() if not api.is_own]
API_MESSAGES: Final[list[type[Message]]] = [
    cls for api in KAFKA_APIS for cls in (api.request, api.response)
]
OWN_MESSAGES: Final[list[type[Message]]] = [
    cls for api in APIS.values() if api.is_own for cls in (api.request, api.response)
]
STORED_MESSAGES: Final[list[type[Message]]] = [
    consumer_offsets.OffsetCommitKey,
    consumer_offsets.OffsetCommitValue,
    consumer_offsets.GroupMetadataKey,
    consumer_offsets.GroupMetadataValue,
    consumer_group_records.ConsumerGroupMetadataKey,
    consumer_group_records.ConsumerGroupMetadataValue,
    consumer_group_records.ConsumerGroupMemberMetadataKey,
    consumer_group_records.ConsumerGroupMemberMetadataValue,
    consumer_group_records.ConsumerGroupTargetAssignmentMetadataKey,
    consumer_group_records.ConsumerGroupTargetAssignmentMetadataValue,
    consumer_group_records.ConsumerGroupTargetAssignmentMemberKey,
    consumer_group_records.ConsumerGroupTargetAssignmentMemberValue,
    consumer_group_records.ConsumerGroupCurrentMemberAssignmentKey,
    consumer_group_records.ConsumerGroupCurrentMemberAssignmentValue,
    transaction_state.TransactionLogKey,
    transaction_state.TransactionLogValue,
]
PEER_MESSAGES: Final[list[type[Message]]] = [
    cls for api in PEER_APIS.values() for cls in (api.request, api.response) if cls is not None
]
MESSAGES: Final = API_MESSAGES + STORED_MESSAGES + PEER_MESSAGES + OWN_MESSAGES

_INTEGER_BITS: Final = {"b": 8, "h": 16, "l": 32, "q": 64}

# Around 127 a compact length grows to two bytes; around 32 KiB a classic one would turn negative.
_STRINGS: Final = ["", "a", "topic-1", "\N{WAVE DASH}\N{SNOWMAN}", "x" * 126, "x" * 127, "é" * 150]
_BLOBS: Final = [b"", b"\x00", b"\xff" * 3, bytes(range(200))]


def versions_of(cls: type[Message]) -> range:
    return range(cls.first_version, cls.last_version + 1)


def every_version() -> Iterator[tuple[type[Message], int]]:
    for cls in MESSAGES:
        for version in versions_of(cls):
            yield cls, version


def random_values() -> st.SearchStrategy["RandomValues"]:
    return st.integers(0, 2**32 - 1).map(RandomValues)


def plausible_values() -> st.SearchStrategy["RandomValues"]:
    return st.integers(0, 2**32 - 1).map(lambda seed: RandomValues(seed, plausible=True))


class RandomValues:
    """Values from a seed.

    `plausible` ones have known error codes, and times that are whole seconds a clock can show:
    the peers that have types for these convert them, some through floats.
    """

    def __init__(self, seed: int, *, plausible: bool = False) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.plausible = plausible

    def __repr__(self) -> str:
        return f"RandomValues({self.seed})"

    def struct(self, cls: type[S], version: int) -> S:
        """An instance of `cls` that `version` can say."""
        return cls(
            **{
                field.name: self._field(field, version)
                for field in cls.wire_fields
                if field.exists_in(version)
            }
        )

    def _field(self, field: WireField, version: int) -> object:
        if field.tag is not None and self.random.random() < 0.5:
            return field.default
        if self.plausible and field.is_own:
            return field.default  # kio refuses tags that it does not know
        if field.nullable_in(version) and self.random.random() < 0.3:
            return None
        if self.plausible and field.name.endswith("error_code"):
            return int(self.random.choice(list(ErrorCode)))
        if self.plausible and field.type == INT64 and field.name.endswith(("_ms", "timestamp")):
            # kio knows no time before 1970 but where it is the default.
            none = [-1] if field.default == -1 else []
            return self.random.choice([*none, 1000 * self.random.randrange(10**10)])
        return self.value(field.type, version)

    def value(self, wire_type: WireType[Any], version: int) -> object:  # Any: each is looked at
        random = self.random
        match wire_type:
            case Scalar(format="?"):
                return random.random() < 0.5
            case Scalar(format="d"):
                return random.gauss(0, 1e6)
            case Scalar(format=format):
                return self._integer(_INTEGER_BITS[format.lower()], signed=format.islower())
            case Array(element=element):
                return tuple(self.value(element, version) for _ in range(random.randrange(4)))
            case Nested(struct=struct):
                return self.struct(struct, version)
        if wire_type == UUID16:
            return UUID(int=random.getrandbits(128))
        assert wire_type in (STRING, BYTES, RECORDS)
        return random.choice(_STRINGS) if wire_type == STRING else random.choice(_BLOBS)

    def _integer(self, bits: int, *, signed: bool) -> int:
        lowest = -(1 << (bits - 1)) if signed else 0
        edges = [lowest, lowest + (1 << bits) - 1, 0, 1, -1 if signed else 2]
        if self.random.random() < 0.5:
            return self.random.choice(edges)
        return lowest + self.random.getrandbits(bits)
