"""The protocol's own simple types as constructs, and the streams they read and write.

Integers are construct's. What is here are the types that construct does not have: lengths before
strings and bytes, classic (a signed integer, -1 is null) and compact (an unsigned varint of the
length plus one, 0 is null), uuids, and record batches that are not copied.

Every length is held against what is left of the message before anything is made of it, so a
message costs memory in proportion to its bytes, whatever it claims. That proportion is large for
elements of a byte or two, each of which becomes an object, so they are counted, too. `struct`
errors, construct's and Unicode's are turned into `MalformedMessage` by the codec that drives these.
"""

from struct import Struct
from typing import Any, Final, NoReturn
from uuid import UUID

from tidemark.protocol.construct_library import Construct
from tidemark.protocol.errors import MalformedMessage
from tidemark.protocol.schema.wire_types import SizedRecords

UVARINT_MAX: Final = 2**32 - 1
STRING_BYTES_MAX: Final = 2**15 - 1
"""What a classic length can say. Compact ones could say more; Kafka takes and sends no string that
is longer, or an older version could not name what a newer one has made."""
ELEMENTS_UNLIMITED: Final = 2**63 - 1

Chunk = bytes | bytearray | memoryview | SizedRecords
"""A piece of an encoded message: records that are not in memory stay what they are."""


class Reader:
    """A stream over one message, or over one tagged field of it."""

    __slots__ = ("_at", "_view", "elements_left")

    def __init__(self, data: bytes | memoryview, *, elements_max: int = ELEMENTS_UNLIMITED) -> None:
        self._view = memoryview(data)
        self._at = 0
        self.elements_left = elements_max

    @property
    def remaining(self) -> int:
        return len(self._view) - self._at

    def take_elements(self, count: int) -> None:
        """Count `count` more elements of arrays or tagged sections, before they are made."""
        self.elements_left -= count
        if self.elements_left < 0:
            refuse_elements()

    def read(self, size: int) -> bytes:
        return bytes(self.view(size))

    def view(self, size: int) -> memoryview:
        """The next `size` bytes, without copying them."""
        if not 0 <= size <= len(self._view) - self._at:
            raise MalformedMessage(f"{size} bytes wanted, {self.remaining} left")
        start = self._at
        self._at = start + size
        return self._view[start : self._at]


class Writer:
    """A stream into the pieces of one message; records that are not in memory stay apart."""

    __slots__ = ("chunks",)

    def __init__(self) -> None:
        self.chunks: list[Chunk] = []

    def write(self, data: bytes) -> int:
        self.chunks.append(data)
        return len(data)

    def write_records(self, records: Chunk) -> None:
        self.chunks.append(records)


def refuse_elements() -> NoReturn:
    raise MalformedMessage("more elements in all than are accepted in one message")


def refuse_string(length: int) -> NoReturn:
    raise MalformedMessage(f"a string of {length} bytes, {STRING_BYTES_MAX} are the most")


def encode_uvarint(value: int) -> bytes:
    """Seven bits a byte, the lowest first; the top bit says that more follow. Never zig-zag."""
    if value < 0x80:
        return bytes((value,))
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_uvarint(stream: Reader) -> int:
    value = shift = 0
    while True:
        byte = stream.view(1)[0]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift > 28:
            raise MalformedMessage("an unsigned varint of more than five bytes")
    if value > UVARINT_MAX:
        raise MalformedMessage(f"an unsigned varint of {value}, beyond 32 bits")
    return value


class Length:
    """How a length or a count is written before what it counts; None stands for null."""

    __slots__ = ()

    bytes_min: int

    def read(self, stream: Reader) -> int | None:
        raise NotImplementedError

    def encode(self, length: int | None) -> bytes:
        raise NotImplementedError


class ClassicLength(Length):
    """A signed integer, -1 for null."""

    __slots__ = ("_struct", "bytes_min")

    def __init__(self, format: str) -> None:
        self._struct = Struct(format)
        self.bytes_min = self._struct.size

    def read(self, stream: Reader) -> int | None:
        length: int = self._struct.unpack(stream.view(self.bytes_min))[0]
        if length < -1:
            raise MalformedMessage(f"a length of {length}")
        return None if length == -1 else length

    def encode(self, length: int | None) -> bytes:
        return self._struct.pack(-1 if length is None else length)


class CompactLength(Length):
    """An unsigned varint of the length plus one, 0 for null."""

    __slots__ = ()

    bytes_min = 1

    def read(self, stream: Reader) -> int | None:
        length = read_uvarint(stream)
        return None if length == 0 else length - 1

    def encode(self, length: int | None) -> bytes:
        return encode_uvarint(0 if length is None else length + 1)


INT16_LENGTH: Final = ClassicLength(">h")
INT32_LENGTH: Final = ClassicLength(">i")
COMPACT_LENGTH: Final = CompactLength()


class Prefixed(Construct):  # type: ignore[misc]  # construct ships no types
    """Something with a length before it, which may be null if `nullable`.

    Where null cannot be said, it is written as `null_as`, or refused if that is None.
    """

    def __init__(self, length: Length, *, nullable: bool, null_as: object = None) -> None:
        super().__init__()
        self.length = length
        self.nullable = nullable
        self.null_as = null_as
        self.bytes_min = length.bytes_min

    def _parse(self, stream: Reader, context: object, path: str) -> object:
        length = self.parse_length(stream)
        return None if length is None else self.parse_content(stream, length)

    def _build(self, obj: object, stream: Writer, context: object, path: str) -> object:
        if not self.build_null(obj, stream):
            self.build_content(self.null_as if obj is None else obj, stream)
        return obj

    def parse_length(self, stream: Reader) -> int | None:
        length = self.length.read(stream)
        if length is None and not self.nullable:
            raise MalformedMessage("a null where there must be a value")
        return length

    def build_null(self, obj: object, stream: Writer) -> bool:
        """Write `obj` if it is null and can be said to be; whether that is all there is to do."""
        if obj is None and self.nullable:
            stream.write(self.length.encode(None))
            return True
        if obj is None and self.null_as is None:
            raise MalformedMessage("a null where this version must have a value")
        return False

    def parse_content(self, stream: Reader, length: int) -> object:
        raise NotImplementedError

    def build_content(self, obj: Any, stream: Writer) -> None:  # Any: a subclass knows its type
        raise NotImplementedError


class Text(Prefixed):
    """A UTF-8 string."""

    def parse_content(self, stream: Reader, length: int) -> str:
        if length > STRING_BYTES_MAX:
            refuse_string(length)
        return str(stream.view(length), "utf-8")

    def build_content(self, obj: str, stream: Writer) -> None:
        encoded = obj.encode()
        if len(encoded) > STRING_BYTES_MAX:
            refuse_string(len(encoded))
        stream.write(self.length.encode(len(encoded)) + encoded)


class Blob(Prefixed):
    """Bytes that mean nothing to the protocol; copied out of the message."""

    def parse_content(self, stream: Reader, length: int) -> bytes:
        return stream.read(length)

    def build_content(self, obj: bytes | bytearray | memoryview, stream: Writer) -> None:
        stream.write(self.length.encode(len(obj)))
        stream.write(bytes(obj))


class Records(Prefixed):
    """Record batches: parsed to a view of the message, built from a view, bytes or a file slice."""

    def parse_content(self, stream: Reader, length: int) -> memoryview:
        return stream.view(length)

    def build_content(self, obj: Chunk, stream: Writer) -> None:
        stream.write(self.length.encode(len(obj)))
        stream.write_records(obj)


class Uuid(Construct):  # type: ignore[misc]  # construct ships no types
    """Sixteen bytes."""

    bytes_min = 16

    def _parse(self, stream: Reader, context: object, path: str) -> UUID:
        return UUID(bytes=stream.read(16))

    def _build(self, obj: UUID, stream: Writer, context: object, path: str) -> UUID:
        stream.write(obj.bytes)
        return obj


def bytes_min(construct: Construct) -> int:
    """The fewest bytes that a value of `construct` can take."""
    own = getattr(construct, "bytes_min", None)
    return int(construct.sizeof() if own is None else own)
