"""What is known of the fields of a value (`protocol/values.py`), found out when it is asked for.

To look at a class the way `dataclasses` does takes longer than to make it. So what methods are
written from is kept as it was declared, and `dataclasses` looks at a class only when somebody calls
one of its functions, such as `replace`, with it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, Final, Generic, get_origin

DECLARATION: Final = "declared_fields"
"""The attribute of a value's class that has its `Declaration`."""

# Any, here and below: classes, and the values of their attributes.
_Field = dataclasses.Field[Any]


class Declaration:
    """The fields that a class has in addition to those of its bases."""

    __slots__ = ("_fields", "_given", "kinds", "kw_only")

    def __init__(
        self, namespace: dict[str, Any], annotations: Mapping[str, object], *, kw_only: bool
    ) -> None:
        """Takes their defaults out of `namespace`, where their slots will be."""
        self.kinds = {name: kind for name, kind in annotations.items() if not _is_class_var(kind)}
        self.kw_only = kw_only
        self._given = {name: namespace.pop(name) for name in self.kinds if name in namespace}
        self._fields: dict[str, _Field] | None = None

    @property
    def fields(self) -> dict[str, _Field]:
        """By name, as `dataclasses.field` makes them. Raises `ValueError` for a list as default."""
        if self._fields is None:
            self._fields = {name: self._field(name) for name in self.kinds}
        return self._fields

    def _field(self, name: str) -> _Field:
        given = self._given.get(name, dataclasses.MISSING)
        field: Any = given if isinstance(given, dataclasses.Field) else None
        if field is None:
            field = dataclasses.field(default=given)
        if type(field.default).__hash__ is None:
            raise ValueError(f"{name} has a default that all instances would share")
        field.name, field.type = name, self.kinds[name]
        if field.kw_only is dataclasses.MISSING:
            field.kw_only = self.kw_only
        return field  # type: ignore[no-any-return]  # it is one by now

    def describe(self, cls: Any) -> None:
        """Have `dataclasses` look at a class that is like `cls`, which has no more defaults."""
        namespace = {
            **self.fields,
            "__annotations__": cls.__annotations__,
            "__module__": cls.__module__,  # where it looks names up
            "__doc__": cls.__doc__,  # or it looks for its signature
        }
        if Generic in cls.__bases__:
            namespace["__orig_bases__"] = cls.__orig_bases__
        like = type(cls)(cls.__name__, cls.__bases__, namespace)
        dataclasses.dataclass(init=False, repr=False, eq=False, kw_only=self.kw_only)(like)
        for name in _DESCRIPTION:
            setattr(cls, name, vars(like)[name])


class _Undescribed:
    """In the place of what `dataclasses` has not found out yet."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: Any) -> object:
        cls = next(base for base in owner.__mro__ if vars(base).get(self._name) is self)
        vars(cls)[DECLARATION].describe(cls)
        return getattr(owner, self._name)


class _CallSignature:
    """What a class is called with, for `help`: its `__init__` may not be written yet."""

    __slots__ = ()

    def __get__(self, instance: object, owner: Any) -> object:
        if DECLARATION not in vars(owner):
            raise AttributeError("__signature__")  # a class of another kind, which has an own one
        from inspect import Parameter, Signature

        parameters = [
            Parameter(
                field.name,
                Parameter.KEYWORD_ONLY if field.kw_only else Parameter.POSITIONAL_OR_KEYWORD,
                default=_shown_default(field, Parameter.empty),
                annotation=field.type,
            )
            for field in fields_of(owner)
            if field.init
        ]
        # As in a call: whatever may be given by position comes first.
        parameters.sort(key=lambda parameter: parameter.kind)
        return Signature(parameters, return_annotation=None)


def _shown_default(field: _Field, empty: object) -> object:
    if field.default_factory is not dataclasses.MISSING:
        return _MADE
    return empty if field.default is dataclasses.MISSING else field.default


class _Made:
    """Shown for a default that is made anew each time, in the words of `dataclasses`."""

    def __repr__(self) -> str:
        return "<factory>"


_MADE: Final = _Made()


def fields_of(cls: type) -> list[_Field]:
    """As `dataclasses.fields`, in the same order; for a value's class only."""
    found: dict[str, _Field] = {}
    for base in reversed(cls.__mro__):
        declaration = vars(base).get(DECLARATION)
        if declaration is not None:
            found |= declaration.fields
    return list(found.values())


def _is_class_var(kind: object) -> bool:
    """Whether an annotation says that what it is about is the class's own."""
    if isinstance(kind, str):
        return kind.startswith(("ClassVar", "typing.ClassVar"))
    return kind is ClassVar or get_origin(kind) is ClassVar


_DESCRIPTION: Final = ("__dataclass_fields__", "__dataclass_params__", "__match_args__")
UNDESCRIBED: Final = {
    "__signature__": _CallSignature(),
    **{name: _Undescribed(name) for name in _DESCRIPTION},
}
"""What a class has until it is described: one each, for all classes."""
