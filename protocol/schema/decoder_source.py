"""From a declaration and a version to the source of a decoder without a call per field.

What construct does field by field is written out here in one function. Three things make it fast:
neighbouring fields of fixed size are unpacked by one precompiled `struct`, together with the
length (or the first byte of the varint) that follows them; values are stored straight into the
object they belong to; and that object is filled as its unfrozen *twin* (see `instances`).

For `HeartbeatRequest` 0 (group id, generation id, member id) it writes:

```python
def decode(data, at, end, left):
    o1 = twin2()
    n4, = unpack3(data, at)
    at += 2
    stop5 = at + n4
    if not 0 <= n4 <= 32767 or stop5 > end:
        refuse(n4, end - at)
    o1.group_id = data[at:stop5].tobytes().decode()
    at = stop5
    o1.generation_id, n6, = unpack7(data, at)
    ...
    o1.__class__ = HeartbeatRequest8
    return o1
```
"""

from collections.abc import Callable
from functools import cache, lru_cache
from struct import Struct as Packer
from struct import unpack_from
from typing import Any, NoReturn
from uuid import UUID

from tidemark.protocol.errors import MalformedMessage
from tidemark.protocol.primitives import (
    STRING_BYTES_MAX,
    UVARINT_MAX,
    Reader,
    bytes_min,
    refuse_elements,
    refuse_string,
)
from tidemark.protocol.schema.constructs import TaggedFields, struct_construct, type_construct
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
from tidemark.protocol.source import Source
from tidemark.protocol.values import twin_of


def decoder_source(cls: type[Message], version: int) -> Source:
    """The source of `decode(data, at, end, left)`: a memoryview, where the message begins in it,
    its length, and how many elements of arrays and tagged sections it may have in all."""
    writer = _DecoderWriter(version, flexible=cls.is_flexible(version))
    decoded = writer.write_struct(cls)
    writer.source.line(f"return {decoded}")
    return writer.source


class _DecoderWriter:
    """Invariant: `_run` holds what is to be unpacked at `at`, and is empty wherever a line that
    moves `at`, or a block, is written."""

    def __init__(self, version: int, *, flexible: bool) -> None:
        self.source = Source("decode", "data", "at", "end", "left")
        self._version = version
        self._flexible = flexible
        self._run: list[tuple[str, str]] = []
        self._after_run: list[str] = []

    def write_struct(self, struct: type[Struct]) -> str:
        """Decode a struct; gives the variable that holds it."""
        source = self.source
        made = source.fresh("o")
        source.line(f"{made} = {source.constant('twin', twin_of(struct))}()")
        for field in struct.wire_fields:
            if field.exists_in(self._version) and field.tag is None:
                self._write_field(field, f"{made}.{field.name}")
            else:
                default = source.constant("default", field.default)
                source.line(f"{made}.{field.name} = {default}")
        if self._flexible:
            self._write_tags(struct, made)
        self._flush()
        source.line(f"{made}.__class__ = {source.constant(struct.__name__, struct)}")
        return made

    def _write_field(self, field: WireField, target: str) -> None:
        nullable = field.nullable_in(self._version)
        match field.type:
            case Nested(struct=struct) if nullable:
                marker = self.source.fresh("n")
                self._unpack("b", marker)
                self._flush()
                with self.source.block(f"if {marker} < 0:"):
                    self.source.line(f"{target} = None")
                with self.source.block("else:"):
                    self.source.line(f"{target} = {self.write_struct(struct)}")
            case wire_type:
                self._write_value(wire_type, target, nullable=nullable)

    def _write_value(self, wire_type: WireType[Any], target: str, *, nullable: bool) -> None:
        # Any: every wire type is looked at
        match wire_type:
            case Scalar(format=format):
                self._unpack(format, target)
            case Nested(struct=struct):
                self._flush()
                self.source.line(f"{target} = {self.write_struct(struct)}")
            case Array(element=element):
                self._write_array(element, target, nullable=nullable)
            case _ if wire_type == UUID16:
                self._write_uuid(target)
            case _:
                self._write_blob(wire_type, target, nullable=nullable)

    def _write_uuid(self, target: str) -> None:
        raw = self.source.fresh("uuid")
        self._unpack("16s", raw)
        self._after_run.append(f"{target} = {self.source.constant('uuid_of', _uuid_of)}({raw})")

    def _write_blob(self, wire_type: WireType[Any], target: str, *, nullable: bool) -> None:
        # Any: string, bytes or records
        source = self.source
        length = self._write_length("h" if wire_type == STRING else "l")
        stop = source.fresh("stop")
        content = {
            STRING: f"data[at:{stop}].tobytes().decode()",
            BYTES: f"data[at:{stop}].tobytes()",
            RECORDS: f"data[at:{stop}]",
        }[wire_type]

        def write_content() -> None:
            source.line(f"{stop} = at + {length}")
            may_be = "0 <= {0}" if wire_type != STRING else f"0 <= {{0}} <= {STRING_BYTES_MAX}"
            with source.block(f"if not {may_be.format(length)} or {stop} > end:"):
                source.line(f"{source.constant('refuse', _refuse)}({length}, end - at)")
            source.line(f"{target} = {content}")
            source.line(f"at = {stop}")

        self._write_nullable(length, target, write_content, nullable=nullable)

    def _write_array(self, element: WireType[Any], target: str, *, nullable: bool) -> None:
        # Any: an array may hold any wire type
        source = self.source
        length = self._write_length("l")
        construct = type_construct(element, self._version, flexible=self._flexible)
        element_bytes_min = max(1, bytes_min(construct))

        def write_content() -> None:
            with source.block(f"if not 0 <= {length} * {element_bytes_min} <= end - at:"):
                source.line(f"{source.constant('refuse', _refuse)}({length}, end - at)")
            source.line(f"left -= {length}")
            with source.block("if left < 0:"):
                source.line(f"{source.constant('refuse_elements', refuse_elements)}()")
            if isinstance(element, Scalar) and element.format != "?":
                unpack = source.constant("unpack_from", unpack_from)
                source.line(f"{target} = {unpack}(f'>{{{length}}}{element.format}', data, at)")
                source.line(f"at += {length} * {element_bytes_min}")
                return
            items, item = source.fresh("items"), source.fresh("item")
            source.line(f"{items} = []")
            with source.block(f"for _ in range({length}):"):
                self._write_value(element, item, nullable=False)
                self._flush()
                source.line(f"{items}.append({item})")
            source.line(f"{target} = tuple({items})")

        self._write_nullable(length, target, write_content, nullable=nullable)

    def _write_nullable(
        self, length: str, target: str, write_content: Callable[[], None], *, nullable: bool
    ) -> None:
        if not nullable:
            write_content()
            return
        with self.source.block(f"if {length} == -1:"):
            self.source.line(f"{target} = None")
        with self.source.block("else:"):
            write_content()

    def _write_length(self, classic_format: str) -> str:
        """Decode a length or a count, -1 for null in both encodings; gives its variable."""
        length = self.source.fresh("n")
        if not self._flexible:
            self._unpack(classic_format, length)
            self._flush()
            return length
        self._write_uvarint(length)
        self.source.line(f"{length} -= 1")
        return length

    def _write_uvarint(self, target: str) -> None:
        self._unpack("B", target)
        self._flush()
        rest = self.source.constant("rest_of_uvarint", _rest_of_uvarint)
        with self.source.block(f"if {target} > 127:"):
            self.source.line(f"{target}, at = {rest}(data, at, {target})")

    def _write_tags(self, struct: type[Struct], made: str) -> None:
        """Tags are rare, so all but their absence is left to construct."""
        count = self.source.fresh("n")
        self._unpack("B", count)
        self._flush()
        tagged = struct_construct(struct, self._version, flexible=True).tagged
        with self.source.block(f"if {count}:"):
            read = self.source.constant("read_tags", _read_tags)
            known = self.source.constant("tagged", tagged)
            self.source.line(f"at, left = {read}({known}, data, at - 1, {made}, left)")

    def _unpack(self, format: str, target: str) -> None:
        self._run.append((format, target))

    def _flush(self) -> None:
        if [format for format, _ in self._run] == ["B"]:
            self.source.line(f"{self._run[0][1]} = data[at]")
            self.source.line("at += 1")
        elif self._run:
            packer = _packer("".join(format for format, _ in self._run))
            unpack = self.source.constant("unpack", packer.unpack_from)
            targets = "".join(f"{target}, " for _, target in self._run)
            self.source.line(f"{targets}= {unpack}(data, at)")
            self.source.line(f"at += {packer.size}")
        for line in self._after_run:
            self.source.line(line)
        self._run.clear()
        self._after_run.clear()


@cache
def _packer(formats: str) -> Packer:
    return Packer(">" + formats)


@lru_cache(maxsize=4096)
def _uuid_of(raw: bytes) -> UUID:
    """Making one costs as much as the rest of a small struct, and most are ids of few topics."""
    return UUID(bytes=raw)


def _refuse(length: int, remaining: int) -> NoReturn:
    if length == -1:
        raise MalformedMessage("a null where there must be a value")
    if 0 <= length <= remaining:
        refuse_string(length)
    raise MalformedMessage(f"a length of {length}, {remaining} bytes left")


def _rest_of_uvarint(data: memoryview, at: int, first: int) -> tuple[int, int]:
    """A varint whose first byte, just before `at`, says that there are more."""
    value, shift = first & 0x7F, 7
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift > 28:
            raise MalformedMessage("an unsigned varint of more than five bytes")
    if value > UVARINT_MAX:
        raise MalformedMessage(f"an unsigned varint of {value}, beyond 32 bits")
    return value, at


def _read_tags(
    known: TaggedFields, data: memoryview, at: int, made: Struct, left: int
) -> tuple[int, int]:
    """Read the tagged section at `at` into `made`; where it ends, and what is left of `left`."""
    reader = Reader(data[at:], elements_max=left)
    for name, value in known._parse(reader, None, "").items():
        setattr(made, name, value)
    return len(data) - reader.remaining, reader.elements_left
