"""The types a field can have on the wire, and the Python types they decode to."""

from collections.abc import Sequence
from typing import Any, Final, Generic, Protocol, TypeVar
from uuid import UUID

from tidemark.protocol.values import dataclass

T = TypeVar("T")

ZERO_UUID: Final = UUID(int=0)
"""How the protocol says "no id": a uuid field is never null."""


class SizedRecords(Protocol):
    """Record batches that are not in memory, but whose size is known: a slice of a log file."""

    def __len__(self) -> int: ...


@dataclass(frozen=True, slots=True)
class WireType(Generic[T]):
    """How a value of Python type `T` travels; `name` is what the reference page calls it."""

    name: str


@dataclass(frozen=True, slots=True)
class Scalar(WireType[T]):
    """A number of fixed size; `format` is its letter in the `struct` module."""

    format: str


@dataclass(frozen=True, slots=True)
class Array(WireType[Sequence[T]]):
    """A count and that many elements. Decodes to a tuple; any sequence can be encoded."""

    element: WireType[T]
    repeats: bool = False
    """Whether the same objects are in many arrays of a message: each is encoded once."""


@dataclass(frozen=True, slots=True)
class Nested(WireType[T]):
    """A struct inside a message."""

    struct: type[T]


BOOL: Final[Scalar[bool]] = Scalar("bool", "?")
INT8: Final[Scalar[int]] = Scalar("int8", "b")
INT16: Final[Scalar[int]] = Scalar("int16", "h")
UINT16: Final[Scalar[int]] = Scalar("uint16", "H")
INT32: Final[Scalar[int]] = Scalar("int32", "l")
UINT32: Final[Scalar[int]] = Scalar("uint32", "L")
INT64: Final[Scalar[int]] = Scalar("int64", "q")
FLOAT64: Final[Scalar[float]] = Scalar("float64", "d")
UUID16: Final[WireType[UUID]] = WireType("uuid")
STRING: Final[WireType[str]] = WireType("string")
BYTES: Final[WireType[bytes]] = WireType("bytes")
RECORDS: Final[WireType[bytes | memoryview]] = WireType("records")
"""Record batches: decoded to a view of the input, never copied."""


def array(element: WireType[T] | type[T], *, repeats: bool = False) -> WireType[Sequence[T]]:
    """An array of a simple type or of structs; see `Array.repeats`."""
    inner: WireType[Any] = element if isinstance(element, WireType) else nested(element)  # Any: T
    return Array(f"array of {inner.name}", inner, repeats)


def nested(struct: type[T]) -> WireType[T]:
    """One struct inside another."""
    return Nested(struct.__name__, struct)
