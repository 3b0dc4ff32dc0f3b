"""Dataclasses whose methods are written when they are first used.

There are four hundred, and an idle broker makes instances of a fourth of them. `dataclasses`
compiles up to six functions for each at import, which was a third of a broker's start. Here a class
gets its fields and its slots at once, and `__init__`, `__eq__` and `__hash__` at their first call.

A frozen value is filled as its *twin*, a class with the same slots whose attributes can simply be
assigned to, and becomes its own class when it is complete. Python allows that between classes of
the same layout, and a checked assignment for each field costs more. Generated decoders do the same.

A class that is not slotted, is ordered, or has an `__init__` or a base of another kind is left to
`dataclasses`; so are type checkers, who see its decorator.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, Final, Generic, NoReturn, ParamSpec, TypeVar

from tidemark.protocol.source import Source
from tidemark.protocol.value_fields import DECLARATION, UNDESCRIBED, Declaration, fields_of

P = ParamSpec("P")
T = TypeVar("T")

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls: type | None = None, /, **options: bool) -> Any:
        """`dataclasses.dataclass`, in all that can be seen of the result."""
        return _declare(cls, **options) if cls is not None else lambda it: _declare(it, **options)


# Any, here and below: a class that the decorator is about to make, or has made.
_become: Final = object.__dict__["__class__"].__set__  # because the class's own way is frozen
_ABSENT: Final = object()
"""Stands for an argument whose default is made by a factory."""


def twin_of(cls: Any) -> type:
    """A class with the slots of `cls` and its bases, and nothing else of it."""
    namespace: dict[str, object] = {
        "__slots__": vars(cls)["__slots__"],
        "__init__": object.__init__,
        "__setattr__": object.__setattr__,
    }
    if Generic in cls.__bases__:
        namespace["__orig_bases__"] = cls.__orig_bases__  # or typing refuses to make it
    twin: type = type(cls)(f"{cls.__name__}Twin", cls.__bases__, namespace)
    return twin


def maker_of(cls: Callable[P, T]) -> Callable[P, T]:
    """A function that does what calling `cls`, a frozen value without `__post_init__`, does.

    It takes half the time: a class gets its keywords in a dict, and hands them on to `__init__`; a
    function's are bound at once. For the few that are made at every request.
    """
    source = Source("make")
    source.line(f"self = {source.constant('twin', twin_of(cls))}()")
    _write_fields(source, cls)
    source.line(f"self.__class__ = {source.constant('made', cls)}")
    source.line("return self")
    make: Callable[P, T] = source.function()
    return make


def _write_fields(source: Source, cls: Any) -> None:
    """Take the fields of `cls` as parameters, and assign them to `self`."""
    fields = fields_of(cls)
    # As in a call: whatever may be given by position comes first.
    ordered = sorted(
        (field for field in fields if field.init), key=lambda field: bool(field.kw_only)
    )
    by_position = True
    for field in ordered:
        if field.kw_only and by_position:
            by_position = False
            source.parameters.append("*")
        source.parameters.append(field.name + _default(source, field))
    for field in fields:
        if field.default_factory is not dataclasses.MISSING:
            make = source.constant("make", field.default_factory) + "()"
            absent = source.constant("absent", _ABSENT)
            value = f"{make} if {field.name} is {absent} else {field.name}" if field.init else make
            source.line(f"self.{field.name} = {value}")
        elif field.init:
            source.line(f"self.{field.name} = {field.name}")
        elif field.default is not dataclasses.MISSING:
            source.line(f"self.{field.name} = {source.constant('default', field.default)}")


def _default(source: Source, field: dataclasses.Field[Any]) -> str:
    if field.default_factory is not dataclasses.MISSING:
        return f"={source.constant('absent', _ABSENT)}"
    if field.default is dataclasses.MISSING:
        return ""
    return f"={source.constant('default', field.default)}"


def _declare(cls: Any, **options: bool) -> Any:
    if not _is_ours(cls, options):
        return dataclasses.dataclass(**options)(cls)
    namespace = dict(vars(cls))
    for name in ("__dict__", "__weakref__"):
        namespace.pop(name, None)  # of the class that is replaced
    # Asked of the class: from Python 3.14 on, its namespace has a function that makes them.
    declaration = Declaration(namespace, cls.__annotations__, kw_only=options.get("kw_only", False))
    inherited = {name for base in cls.__mro__[1:] for name in vars(base).get("__slots__", ())}
    frozen, eq = options.get("frozen", False), options.get("eq", True)
    methods: dict[str, Any] = {"__init__": _late(lambda: made, "__init__", _init_of)}
    if eq:
        methods["__eq__"] = _late(lambda: made, "__eq__", _eq_of)
        if "__eq__" not in namespace and "__hash__" not in namespace:
            namespace["__hash__"] = _late(lambda: made, "__hash__", _hash_of) if frozen else None
    if frozen:
        methods |= _FROZEN
    it_has = {
        "__qualname__": cls.__qualname__,
        "__doc__": cls.__doc__ or f"{cls.__name__}()",
        "__slots__": tuple(name for name in declaration.kinds if name not in inherited),
        "is_frozen_value": frozen,
        DECLARATION: declaration,
    }
    namespace = {
        "__repr__": _repr,
        "__replace__": dataclasses.replace,
        **methods,
        **UNDESCRIBED,
        **namespace,
        **it_has,
    }
    made = type(cls)(cls.__name__, cls.__bases__, namespace)
    return made


def _is_ours(cls: type, options: dict[str, bool]) -> bool:
    return (
        options.get("slots", False)
        and options.keys() <= {"frozen", "slots", "kw_only", "eq"}
        and "__init__" not in vars(cls)
        and all(
            base in (object, Generic) or hasattr(base, "is_frozen_value") for base in cls.__bases__
        )
    )


def _late(made: Callable[[], Any], name: str, write: Callable[[Any], Any]) -> Callable[..., Any]:
    """A method that is written, and takes its own place, when it is first called."""

    def first(*args: Any, **kwargs: Any) -> Any:
        cls = made()
        method = write(cls)
        method.__qualname__ = f"{cls.__qualname__}.{name}"  # for the TypeErrors it raises
        method.__module__ = cls.__module__
        setattr(cls, name, method)
        return method(*args, **kwargs)

    return first


def _init_of(cls: Any) -> Any:
    source = Source("__init__", "self")
    if cls.is_frozen_value:
        become, twin = source.constant("become", _become), source.constant("twin", twin_of(cls))
        source.line(f"{become}(self, {twin})")
    _write_fields(source, cls)
    if cls.is_frozen_value:
        source.line(f"self.__class__ = {source.constant('made', cls)}")
    source.line("self.__post_init__()" if hasattr(cls, "__post_init__") else "pass")
    return source.function()


def _eq_of(cls: Any) -> Any:
    source = Source("__eq__", "self", "other")
    with source.block("if other.__class__ is self.__class__:"):
        source.line(f"return {_compared(cls, 'self')} == {_compared(cls, 'other')}")
    source.line("return NotImplemented")
    return source.function()


def _hash_of(cls: Any) -> Any:
    source = Source("__hash__", "self")
    source.line(f"return hash({_compared(cls, 'self')})")
    return source.function()


def _compared(cls: Any, instance: str) -> str:
    fields = [field.name for field in fields_of(cls) if field.compare]
    return "(" + "".join(f"{instance}.{name}, " for name in fields) + ")"


@recursive_repr()
def _repr(self: Any) -> str:
    shown = (field.name for field in fields_of(type(self)) if field.repr)
    values = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
    return f"{type(self).__qualname__}({values})"


def _refuse_assignment(self: object, name: str, value: object = None) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"{type(self).__name__}.{name} cannot be changed")


def _getstate(self: Any) -> list[object]:
    return [getattr(self, field.name) for field in fields_of(type(self))]


def _setstate(self: Any, state: Iterable[object]) -> None:
    for field, value in zip(fields_of(type(self)), state, strict=True):
        object.__setattr__(self, field.name, value)


_FROZEN: Final = {
    "__setattr__": _refuse_assignment,
    "__delattr__": _refuse_assignment,
    "__getstate__": _getstate,
    "__setstate__": _setstate,
}
