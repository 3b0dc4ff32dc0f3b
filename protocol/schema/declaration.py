"""How a message is declared: once, for all its versions and both encodings.

A message is a frozen, slotted, keyword-only dataclass. Each field says with `wire` how it travels,
in which versions it exists, where it may be null, and, in a sentence, what it means:

```python
@message(versions=(0, 4), flexible_since=4)
class HeartbeatRequest(Message):
    group_id: str = wire(STRING, "The group the member belongs to.")
    generation_id: int = wire(INT32, "The generation the member joined.")
    member_id: str = wire(STRING, "The member that is alive.")
    group_instance_id: str | None = wire(
        STRING, "The member's static name.", since=3, null_since=3, default=None
    )
```

The decorators are `dataclass_transform`s: a type checker sees ordinary keyword-only dataclasses.
Nothing is compiled here; what a declaration means on the wire is for `constructs` and
`straight_line` to say, and they must agree.
"""

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar, dataclass_transform, overload

from tidemark.protocol.schema.wire_types import WireType
from tidemark.protocol.value_fields import fields_of
from tidemark.protocol.values import dataclass

T = TypeVar("T")
S = TypeVar("S", bound="Struct")
M = TypeVar("M", bound="Message")

NEWEST: Final = 32767
"""Versions are int16: what has no last version lasts until here."""

_METADATA_KEY: Final = "wire"


OWN_TAGS_FROM: Final = 10_000
"""Tags of our own fields in Kafka's messages, far from those that it gives out one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WireField:
    """What is known of one field. Versions are inclusive at both ends, as in the protocol's tables.

    `null_since` is the first version in which null can be said; before it, a null is written as
    `null_as` where that is given, and refused where it is not. A field with a `tag` travels in the
    tagged section that ends a flexible struct, and only if it differs from its default. A field
    that a version lacks must hold its default there, unless it is `ignorable`.
    """

    name: str
    type: WireType[Any]  # Any: a field may hold any of the wire types
    doc: str
    since: int
    until: int
    null_since: int | None
    null_as: Any  # Any: a value of the field's own type
    tag: int | None
    default: Any  # Any: a value of the field's own type, or dataclasses.MISSING
    ignorable: bool

    def exists_in(self, version: int) -> bool:
        return self.since <= version <= self.until

    @property
    def is_own(self) -> bool:
        """Whether it is none of Kafka's: who does not know a tag passes it over (KIP-482)."""
        return self.tag is not None and self.tag >= OWN_TAGS_FROM

    def nullable_in(self, version: int) -> bool:
        return self.null_since is not None and version >= self.null_since

    def holds_default(self, value: object) -> bool:
        """Whether `value` is what a reader assumes when the field is absent."""
        if self.default == ():
            return value is not None and not value  # an empty list is an empty tuple
        return bool(value == self.default)


@overload
def wire(
    type: WireType[T],
    doc: str,
    *,
    since: int = 0,
    until: int = NEWEST,
    tag: int | None = None,
    default: T = ...,
    ignorable: bool = False,
) -> T: ...
@overload
def wire(
    type: WireType[T],
    doc: str,
    *,
    since: int = 0,
    until: int = NEWEST,
    null_since: int,
    null_as: T | None = None,
    tag: int | None = None,
    default: T | None = ...,
    ignorable: bool = False,
) -> T | None: ...
def wire(
    type: WireType[Any],  # Any, here and below: the overloads tie these together
    doc: str,
    *,
    since: int = 0,
    until: int = NEWEST,
    null_since: int | None = None,
    null_as: Any = None,
    tag: int | None = None,
    default: Any = dataclasses.MISSING,
    ignorable: bool = False,
) -> Any:
    """Declare a field; see `WireField` for what the arguments mean."""
    declared = {
        "type": type,
        "doc": doc,
        "since": since,
        "until": until,
        "null_since": null_since,
        "null_as": null_as,
        "tag": tag,
        "default": default,
        "ignorable": ignorable,
    }
    return dataclasses.field(default=default, metadata={_METADATA_KEY: declared})


class _WireFields:
    """The fields of a struct, made when they are first asked for: by a codec, mostly."""

    def __get__(self, instance: object, owner: Any) -> tuple[WireField, ...]:
        fields = tuple(
            WireField(name=field.name, **field.metadata[_METADATA_KEY])
            for field in fields_of(owner)
        )
        owner.wire_fields = fields
        return fields


class Struct:
    """A part of a message: a frozen dataclass, made as `protocol/values.py` says."""

    __slots__ = ()

    is_frozen_value: ClassVar[bool] = True
    wire_fields: ClassVar[tuple[WireField, ...]]

    if TYPE_CHECKING:  # What `struct` gives it, for whoever has one and does not know which.

        def __init__(self, **values: object) -> None: ...
        def __eq__(self, other: object) -> bool: ...
        def __hash__(self) -> int: ...


class Message(Struct):
    """A request, a response or a stored value: what is encoded and decoded as a whole."""

    __slots__ = ()

    first_version: ClassVar[int]
    last_version: ClassVar[int]
    flexible_since: ClassVar[int | None]
    straight_line: ClassVar[bool]

    @classmethod
    def is_flexible(cls, version: int) -> bool:
        """Whether `version` has compact lengths, and tagged fields at the end of every struct."""
        return cls.flexible_since is not None and version >= cls.flexible_since


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(wire,))
def struct(cls: type[S]) -> type[S]:
    """Make a frozen, slotted, keyword-only dataclass of a declaration."""
    made = dataclass(frozen=True, slots=True, kw_only=True)(cls)
    made.wire_fields = _WireFields()  # type: ignore[assignment]  # what it gives, once asked
    return made


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(wire,))
def message(
    *,
    versions: tuple[int, int],
    flexible_since: int | None = None,
    straight_line: bool = False,
) -> Callable[[type[M]], type[M]]:
    """Make a message of a declaration: `versions` are the first and the last that are spoken.

    `straight_line` is for those that carry the load, or an entry for each of thousands of
    partitions: they go through a codec that is generated for them.
    """

    def declare(cls: type[M]) -> type[M]:
        made = struct(cls)
        made.first_version, made.last_version = versions
        made.flexible_since = flexible_since
        made.straight_line = straight_line
        return made

    return declare
