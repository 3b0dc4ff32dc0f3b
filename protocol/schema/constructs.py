"""From a declaration and a version to a construct: the definition of what is on the wire.

The straight-line codecs are held equal to this one, so this is written to be read. construct's
own compiler then turns it into a function; the classes here tell it how (`_emitparse`,
`_emitbuild`), and do the same uncompiled.
"""

from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from tidemark.protocol.construct_library import CodeGen, Construct, Flag, FormatField
from tidemark.protocol.errors import MalformedMessage
from tidemark.protocol.primitives import (
    COMPACT_LENGTH,
    INT16_LENGTH,
    INT32_LENGTH,
    Blob,
    Length,
    Prefixed,
    Reader,
    Records,
    Text,
    Uuid,
    Writer,
    bytes_min,
    encode_uvarint,
    read_uvarint,
)
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


class ArrayOf(Prefixed):
    """A count and that many elements."""

    def __init__(self, element: Construct, length: Length, *, nullable: bool) -> None:
        super().__init__(length, nullable=nullable)
        self.element = element
        # At least one byte each, or a count of a few bytes could ask for any number of elements.
        self.element_bytes_min = max(1, bytes_min(element))

    def parse_content(self, stream: Reader, length: int) -> tuple[object, ...]:
        self.check_count(stream, length)
        parse = self.element._parse
        return tuple([parse(stream, None, "") for _ in range(length)])

    def build_content(self, obj: Sequence[object], stream: Writer) -> None:
        stream.write(self.length.encode(len(obj)))
        for element in obj:
            self.element._build(element, stream, None, "")

    def check_count(self, stream: Reader, count: int) -> None:
        if count * self.element_bytes_min > stream.remaining:
            raise MalformedMessage(f"{count} elements claimed, {stream.remaining} bytes left")
        stream.take_elements(count)

    def _emitparse(self, code: CodeGen) -> str:
        self._compileinstance(code)
        name = f"parse_array_{code.allocateId()}"
        code.append(f"""
            def {name}(io, this):
                array = linkedinstances[{id(self)}]
                count = array.parse_length(io)
                if count is None:
                    return None
                array.check_count(io, count)
                return tuple([{self.element._compileparse(code)} for _ in range(count)])
        """)
        return f"{name}(io, this)"

    def _emitbuild(self, code: CodeGen) -> str:
        self._compileinstance(code)
        name = f"build_array_{code.allocateId()}"
        code.append(f"""
            def {name}(elements, io, this):
                if linkedinstances[{id(self)}].build_null(elements, io):
                    return elements
                io.write(linkedinstances[{id(self)}].length.encode(len(elements)))
                for obj in elements:
                    {self.element._compilebuild(code)}
                return elements
        """)
        return f"{name}(obj, io, this)"


class NullableStruct(Construct):  # type: ignore[misc]  # construct ships no types
    """A struct that may be null: an int8 marker, -1 for null and 1 for a struct that follows."""

    bytes_min = 1

    def __init__(self, inner: Construct) -> None:
        super().__init__()
        self.inner = inner

    def _parse(self, stream: Reader, context: object, path: str) -> object:
        is_null = stream.view(1)[0] >= 0x80  # any negative marker
        return None if is_null else self.inner._parse(stream, context, path)

    def _build(self, obj: object, stream: Writer, context: object, path: str) -> object:
        if obj is None:
            stream.write(b"\xff")
        else:
            stream.write(b"\x01")
            self.inner._build(obj, stream, context, path)
        return obj


class TaggedFields(Construct):  # type: ignore[misc]  # construct ships no types
    """The section that ends a flexible struct: a count, then a tag, a size and content each.

    Parses to the values of the known tags, by field name. Unknown tags are skipped: they are how
    a newer peer adds to a version without breaking an older one.
    """

    bytes_min = 1

    def __init__(self, fields: Sequence[tuple[WireField, Construct]]) -> None:
        super().__init__()
        tagged = [
            (field.tag, field, construct) for field, construct in fields if field.tag is not None
        ]
        self.ascending = sorted(tagged, key=lambda entry: entry[0])
        self.by_tag = {tag: (field, construct) for tag, field, construct in tagged}

    def _parse(self, stream: Reader, context: object, path: str) -> dict[str, object]:
        values: dict[str, object] = {}
        count = read_uvarint(stream)
        if count * 2 > stream.remaining:
            raise MalformedMessage(f"{count} tagged fields claimed, {stream.remaining} bytes left")
        stream.take_elements(count)
        for _ in range(count):
            tag, size = read_uvarint(stream), read_uvarint(stream)
            content = Reader(stream.view(size), elements_max=stream.elements_left)
            if tag in self.by_tag:
                field, construct = self.by_tag[tag]
                values[field.name] = construct._parse(content, context, path)
                if content.remaining:
                    raise MalformedMessage(f"{content.remaining} bytes too many in tag {tag}")
                stream.elements_left = content.elements_left
        return values

    def _build(self, obj: object, stream: Writer, context: object, path: str) -> object:
        present = [
            (tag, construct, value)
            for tag, field, construct in self.ascending
            if not field.holds_default(value := getattr(obj, field.name))
        ]
        stream.write(encode_uvarint(len(present)))
        for tag, construct, value in present:
            content = Writer()
            construct._build(value, content, context, path)
            stream.write(encode_uvarint(tag) + encode_uvarint(sum(map(len, content.chunks))))
            stream.chunks += content.chunks
        return obj


class StructOf(Construct, Generic[S]):  # type: ignore[misc]  # construct ships no types
    """The fields of a declared struct, one after another, then its tagged section if there is one.

    A field that the version lacks is left to the dataclass's own default when parsing. When
    building it must hold that default: what cannot be said must not be silently lost.
    """

    def __init__(
        self,
        struct: type[S],
        fields: Sequence[tuple[WireField, Construct]],
        tagged: TaggedFields | None,
        unsayable: Sequence[WireField],
    ) -> None:
        super().__init__()
        self.struct = struct
        self.fields = [(field.name, construct) for field, construct in fields]
        self.tagged = tagged
        self.unsayable = unsayable
        self.bytes_min = sum(bytes_min(construct) for _, construct in fields) + bool(tagged)

    def _parse(self, stream: Reader, context: object, path: str) -> S:
        values = {name: part._parse(stream, context, path) for name, part in self.fields}
        if self.tagged is not None:
            values |= self.tagged._parse(stream, context, path)
        return self.struct(**values)

    def _build(self, obj: S, stream: Writer, context: object, path: str) -> S:
        self.check_sayable(obj)
        for name, part in self.fields:
            part._build(getattr(obj, name), stream, context, path)
        if self.tagged is not None:
            self.tagged._build(obj, stream, context, path)
        return obj

    def _emitparse(self, code: CodeGen) -> str:
        self._compileinstance(code)
        name = f"parse_struct_{code.allocateId()}"
        values = "".join(
            f"                    {field}={part._compileparse(code)},\n"
            for field, part in self.fields
        )
        rest = "" if self.tagged is None else f"**{self.tagged._compileparse(code)}"
        code.append(f"""
            def {name}(io, this):
                return linkedinstances[{id(self)}].struct(
{values}                    {rest}
                )
        """)
        return f"{name}(io, this)"

    def _emitbuild(self, code: CodeGen) -> str:
        self._compileinstance(code)
        name = f"build_struct_{code.allocateId()}"
        fields = "".join(
            f"                obj = whole.{field}; {part._compilebuild(code)}\n"
            for field, part in self.fields
        )
        rest = "" if self.tagged is None else f"obj = whole; {self.tagged._compilebuild(code)}"
        code.append(f"""
            def {name}(whole, io, this):
                linkedinstances[{id(self)}].check_sayable(whole)
{fields}                {rest}
                return whole
        """)
        return f"{name}(obj, io, this)"

    def check_sayable(self, obj: S) -> None:
        for field in self.unsayable:
            if not field.holds_default(getattr(obj, field.name)):
                raise MalformedMessage(
                    f"{type(obj).__name__}.{field.name} is set, and this version cannot say it"
                )


def struct_construct(struct: type[S], version: int, *, flexible: bool) -> StructOf[S]:
    """What `struct` is in `version` of the message that contains it."""
    present = [field for field in struct.wire_fields if field.exists_in(version)]
    constructs = [(field, field_construct(field, version, flexible=flexible)) for field in present]
    tagged = [pair for pair in constructs if pair[0].tag is not None]
    return StructOf(
        struct,
        [pair for pair in constructs if pair[0].tag is None],
        TaggedFields(tagged) if flexible else None,
        [
            field
            for field in struct.wire_fields
            if not field.exists_in(version) and not field.ignorable
        ],
    )


def field_construct(field: WireField, version: int, *, flexible: bool) -> Construct:
    nullable = field.nullable_in(version)
    match field.type:
        case Nested(struct=struct) if nullable:
            return NullableStruct(struct_construct(struct, version, flexible=flexible))
        case wire_type:
            made = type_construct(wire_type, version, flexible=flexible)
    if isinstance(made, Prefixed):
        made.nullable, made.null_as = nullable, field.null_as
    return made


def type_construct(wire_type: WireType[Any], version: int, *, flexible: bool) -> Construct:
    # Any: every wire type is looked at below
    """A type by itself, not nullable, as it is inside an array."""
    match wire_type:
        case Scalar(format="?"):
            return Flag
        case Scalar(format=format):
            return FormatField(">", format)
        case Array(element=element):
            inner = type_construct(element, version, flexible=flexible)
            return ArrayOf(inner, COMPACT_LENGTH if flexible else INT32_LENGTH, nullable=False)
        case Nested(struct=struct):
            return struct_construct(struct, version, flexible=flexible)
    if wire_type == UUID16:
        return Uuid()
    if wire_type == STRING:
        return Text(COMPACT_LENGTH if flexible else INT16_LENGTH, nullable=False)
    blob = Records if wire_type == RECORDS else Blob
    assert wire_type in (BYTES, RECORDS)
    return blob(COMPACT_LENGTH if flexible else INT32_LENGTH, nullable=False)
