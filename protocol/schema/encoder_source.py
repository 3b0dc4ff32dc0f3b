"""From a declaration and a version to the source of an encoder without a call per field.

The counterpart of `decoder_source`: neighbouring fields of fixed size are packed by one
precompiled `struct`, together with the length that follows them. The pieces are left unjoined,
because what comes around them (a header, a slice of a file) is not known here.
"""

from collections.abc import Callable
from struct import Struct as Packer
from struct import pack
from typing import Any

from tidemark.protocol.primitives import encode_uvarint
from tidemark.protocol.schema.constructs import struct_construct
from tidemark.protocol.schema.declaration import Message, Struct, WireField
from tidemark.protocol.schema.encoder_calls import (
    UVARINTS,
    encode_string_length,
    unsayable,
    unsayable_null,
    write_tags,
)
from tidemark.protocol.schema.wire_types import (
    BYTES,
    STRING,
    UUID16,
    Array,
    Nested,
    Scalar,
    WireType,
)
from tidemark.protocol.source import Source


def encoder_source(cls: type[Message], version: int) -> Source:
    """The source of `encode(message)`, which gives a list of chunks."""
    writer = _EncoderWriter(version, flexible=cls.is_flexible(version))
    writer.source.line("out = []")
    writer.source.line("append = out.append")
    if _has_repeats(cls):
        writer.source.line("encoded = {}")
    writer.write_struct(cls, "message")
    writer.flush()
    writer.source.line("return out")
    return writer.source


class _EncoderWriter:
    """Invariant: `_run` holds what is to be packed next, and is empty wherever a line that
    appends, or a block, is written."""

    def __init__(self, version: int, *, flexible: bool) -> None:
        self.source = Source("encode", "message")
        self._version = version
        self._flexible = flexible
        self._run: list[tuple[str, str]] = []

    def write_struct(self, struct: type[Struct], value: str) -> None:
        present: list[WireField] = []
        for field in struct.wire_fields:
            if field.exists_in(self._version):
                present.append(field)
            elif not field.ignorable:
                self._write_default_check(field, value)
        for field in present:
            if field.tag is None:
                self._write_field(field, f"{value}.{field.name}")
        if self._flexible:
            tagged = [field for field in present if field.tag is not None]
            self._write_tags(struct, tagged, value)

    def flush(self) -> None:
        if self._run:
            packer = Packer(">" + "".join(format for format, _ in self._run))
            name = self.source.constant("pack", packer.pack)
            self.source.line(f"append({name}({', '.join(value for _, value in self._run)}))")
            self._run.clear()

    def _write_default_check(self, field: WireField, value: str) -> None:
        source = self.source
        with source.block(f"if {self._differs(field, value)}:"):
            source.line(f"{source.constant('unsayable', unsayable)}({value}, {field.name!r})")

    def _differs(self, field: WireField, value: str) -> str:
        """An expression that is true if the field does not hold its default."""
        value = f"{value}.{field.name}"
        if field.default == ():
            return f"{value} is None or len({value})"
        default = self.source.constant("default", field.default)
        if field.default is None:
            return f"{value} is not None"
        if isinstance(field.default, Struct):
            return f"{value} is not {default} and {value} != {default}"
        return f"{value} != {default}"

    def _write_tags(self, struct: type[Struct], fields: list[WireField], value: str) -> None:
        """Tags are rare, so all but their absence is left to construct."""
        self.flush()
        if not fields:
            self._run.append(("B", "0"))
            return
        source = self.source
        any_differs = " or ".join(f"({self._differs(field, value)})" for field in fields)
        with source.block(f"if {any_differs}:"):
            tagged = struct_construct(struct, self._version, flexible=True).tagged
            write = source.constant("write_tags", write_tags)
            source.line(f"{write}({source.constant('tagged', tagged)}, {value}, out)")
        with source.block("else:"):
            source.line(r"append(b'\0')")

    def _write_field(self, field: WireField, value: str) -> None:
        source = self.source
        nullable = field.nullable_in(self._version)
        match field.type:
            case Scalar() | Nested() if not nullable:
                self._write_value(field.type, value)
                return
            case Nested(struct=struct):
                self.flush()
                name = source.fresh("o")
                source.line(f"{name} = {value}")
                with source.block(f"if {name} is None:"):
                    source.line(r"append(b'\xff')")
                with source.block("else:"):
                    source.line(r"append(b'\x01')")
                    self.write_struct(struct, name)
                    self.flush()
                return
        name = source.fresh("x")
        source.line(f"{name} = {value}")
        if not nullable and field.type != UUID16:
            with source.block(f"if {name} is None:"):
                if field.null_as is None:
                    source.line(f"{source.constant('unsayable_null', unsayable_null)}()")
                else:
                    source.line(f"{name} = {source.constant('null_as', field.null_as)}")
        self._write_value(field.type, name, nullable=nullable)

    def _write_value(self, wire_type: WireType[Any], value: str, *, nullable: bool = False) -> None:
        # Any: every wire type is looked at
        match wire_type:
            case Scalar(format=format):
                self._run.append((format, value))
            case Nested(struct=struct):
                self.write_struct(struct, value)
            case Array(element=element, repeats=repeats):
                self._write_array(element, value, nullable=nullable, repeats=repeats)
            case _ if wire_type == UUID16:
                self._run.append(("16s", f"{value}.bytes"))
            case _ if wire_type == STRING:
                encoded = self._write_content(
                    value, lambda content: f"{content}.encode()", "h", nullable=nullable
                )
                self.source.line(f"append({encoded})")
            case _:
                as_chunk = "bytes({})" if wire_type == BYTES else "{}"
                content = self._write_content(value, as_chunk.format, "l", nullable=nullable)
                self.source.line(f"append({content})")

    def _write_content(
        self, value: str, encoded: Callable[[str], str], classic_format: str, *, nullable: bool
    ) -> str:
        """Encode the length of something; gives the variable with its content."""
        source = self.source
        content, length = source.fresh("b"), source.fresh("n")

        def assign() -> None:
            source.line(f"{content} = {encoded(value)}")
            source.line(f"{length} = len({content})")

        if nullable:
            with source.block(f"if {value} is None:"):
                source.line(f"{content} = b''")
                source.line(f"{length} = -1")
            with source.block("else:"):
                assign()
        else:
            assign()
        self._write_length(length, classic_format, is_string=classic_format == "h")
        return content

    def _write_array(
        self, element: WireType[Any], value: str, *, nullable: bool, repeats: bool
    ) -> None:
        # Any: an array may hold any wire type
        source = self.source
        length = source.fresh("n")
        null = f"-1 if {value} is None else " if nullable else ""
        source.line(f"{length} = {null}len({value})")
        self._write_length(length, "l")
        elements = f"{value} or ()" if nullable else value
        if isinstance(element, Scalar):
            with source.block(f"if {length} > 0:"):
                name = source.constant("pack_any", pack)
                source.line(f"append({name}(f'>{{{length}}}{element.format}', *{value}))")
            return
        item = source.fresh("e")
        with source.block(f"for {item} in {elements}:"):
            if repeats:
                self._write_once(element, item)
            else:
                self._write_value(element, item)
                self.flush()

    def _write_once(self, element: WireType[Any], item: str) -> None:  # Any: as above
        """By identity: until the message is encoded, it holds all of them."""
        source = self.source
        with source.block(f"if id({item}) in encoded:"):
            source.line(f"append(encoded[id({item})])")
            source.line("continue")
        start = source.fresh("s")
        source.line(f"{start} = len(out)")
        self._write_value(element, item)
        self.flush()
        source.line(f"encoded[id({item})] = b''.join(out[{start}:])")

    def _write_length(self, length: str, classic_format: str, *, is_string: bool = False) -> None:
        """Encode a length or a count, -1 for null."""
        if not self._flexible:
            self._run.append((classic_format, length))
            self.flush()
            return
        self.flush()
        uvarint = self.source.constant("uvarint", UVARINTS)
        encode = encode_string_length if is_string else encode_uvarint
        more = self.source.constant(encode.__name__, encode)
        self.source.line(f"append({uvarint}[{length}] if {length} < 127 else {more}({length} + 1))")


def _has_repeats(struct: type[Struct]) -> bool:
    arrays = [each.type for each in struct.wire_fields if isinstance(each.type, Array)]
    return any(
        each.repeats or (isinstance(each.element, Nested) and _has_repeats(each.element.struct))
        for each in arrays
    )
