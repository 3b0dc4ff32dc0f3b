"""How instances of declared structs are made.

They are frozen dataclasses in all that can be seen of them, but `dataclasses` does not write their
methods, for two reasons. There are a hundred and fifty structs, and six methods compiled for each
were half of what importing this package took; now it is one, when a struct is first made. And the
`__init__` of a frozen dataclass pays for a checked assignment per field, at every instance.

So an instance is filled as its *twin*, a class with the same slots whose attributes can simply be
assigned to, and becomes its own class when it is complete. Python allows that between classes of
the same layout. The generated decoders do the same.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, Final, NoReturn, ParamSpec, TypeVar, cast

from tidemark.protocol.schema.source import Source

P = ParamSpec("P")
T = TypeVar("T")

_become: Final = object.__dict__["__class__"].__set__  # because the class's own way is frozen


def twin_of(struct: type[Any]) -> type:  # Any: a dataclass, but only the decorator knows
    """A class with the slots of `struct` and its bases, and nothing else of it."""
    slots = tuple(field.name for field in dataclasses.fields(struct))
    return type(
        f"{struct.__name__}Twin",
        struct.__bases__,
        {"__slots__": slots, "__init__": object.__init__},
    )


def compile_init(struct: type[Any]) -> Callable[..., None]:  # Any: as above
    """An `__init__` that takes the fields of `struct` by keyword."""
    source = Source("__init__", "self")
    become, twin = source.constant("become", _become), source.constant("twin", twin_of(struct))
    source.line(f"{become}(self, {twin})")
    _write_fields(source, struct)
    init: Callable[..., None] = source.function()
    init.__qualname__ = f"{struct.__qualname__}.__init__"  # for the TypeErrors it raises
    return init


def maker_of(struct: Callable[P, T]) -> Callable[P, T]:
    """A function that does what calling `struct` does, in half the time.

    A class gets its keywords in a dict, and hands them on to `__init__`; a function's are bound at
    once. For the few structs that are made at every request.
    """
    source = Source("make")
    source.line(f"self = {source.constant('twin', twin_of(cast('type[Any]', struct)))}()")
    _write_fields(source, struct)
    source.line("return self")
    make: Callable[P, T] = source.function()
    return make


def _write_fields(source: Source, struct: Any) -> None:  # Any: as above
    """Take the fields as keywords, and complete the twin in `self` with them."""
    fields = dataclasses.fields(struct)
    if fields:
        source.parameters.append("*")
    for field in fields:
        has_default = field.default is not dataclasses.MISSING
        default = f"={source.constant('default', field.default)}" if has_default else ""
        source.parameters.append(f"{field.name}{default}")
        source.line(f"self.{field.name} = {field.name}")
    source.line(f"self.__class__ = {source.constant(struct.__name__, struct)}")


def refuse_assignment(self: object, name: str, value: object = None) -> NoReturn:
    """The `__setattr__` and `__delattr__` of every struct."""
    raise dataclasses.FrozenInstanceError(f"{type(self).__name__}.{name} cannot be changed")
