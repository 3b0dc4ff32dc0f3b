"""Tables of settings under Kafka's names: each declared once, with type, default and meaning.

A table is a frozen dataclass whose fields are `setting(...)`: the field is the typed value that the
code reads, its metadata is what DescribeConfigs and the documentation show. What clients send is
text; it is checked by the setting's kind, and a refusal says what to write instead.
"""

import math
from collections.abc import Mapping
from dataclasses import field, fields
from difflib import get_close_matches
from enum import IntEnum
from typing import Any, Final, Protocol

from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.primitives import STRING_BYTES_MAX
from tidemark.protocol.values import dataclass


class ConfigType(IntEnum):
    """A setting's type, as DescribeConfigs names it."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    LONG = 5
    DOUBLE = 6
    LIST = 7


class Kind(Protocol):
    """What texts a setting takes, and what they mean."""

    @property
    def type(self) -> ConfigType: ...

    def parse(self, text: str) -> object:
        """The value of `text`. Raises `ValueError` with what would be right: "a number of …"."""


_NUMBERS: Final = frozenset({ConfigType.INT, ConfigType.LONG, ConfigType.DOUBLE})
INT_MAX: Final = 2**31 - 1
LONG_MAX: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number, `low` and `high` included."""

    low: int
    high: int = LONG_MAX
    type: ConfigType = ConfigType.LONG

    def parse(self, text: str) -> int:
        try:
            number = int(text.strip())
        except ValueError:
            raise ValueError(self._wanted()) from None
        if number > self.high:
            raise ValueError(self._range())
        if number < self.low:
            raise ValueError(self._wanted())
        return number

    def _wanted(self) -> str:
        top = INT_MAX if self.type is ConfigType.INT else LONG_MAX
        return f"a whole number, {self.low} or more" if self.high >= top else self._range()

    def _range(self) -> str:
        return f"a whole number from {self.low} to {self.high}"


def whole_int(low: int, high: int = INT_MAX) -> Whole:
    return Whole(low, high, ConfigType.INT)


@dataclass(frozen=True, slots=True)
class Fraction:
    """A number from 0 to 1."""

    type: ConfigType = ConfigType.DOUBLE

    def parse(self, text: str) -> float:
        try:
            number = float(text.strip())
        except ValueError:
            number = math.nan
        if not 0 <= number <= 1:
            raise ValueError("a number from 0 to 1")
        return number


@dataclass(frozen=True, slots=True)
class YesNo:
    type: ConfigType = ConfigType.BOOLEAN

    def parse(self, text: str) -> bool:
        match text.strip().lower():
            case "true":
                return True
            case "false":
                return False
        raise ValueError("true or false")


@dataclass(frozen=True, slots=True)
class OneOf:
    names: tuple[str, ...]
    type: ConfigType = ConfigType.STRING

    def parse(self, text: str) -> str:
        if text.strip() not in self.names:
            raise ValueError(" or ".join(self.names))
        return text.strip()


@dataclass(frozen=True, slots=True)
class ListOf:
    """Names separated by commas, in any order; any name at all if `names` is empty."""

    names: tuple[str, ...] = ()
    empty_allowed: bool = True
    type: ConfigType = ConfigType.LIST

    def parse(self, text: str) -> tuple[str, ...]:
        items = split_list(text)
        if self.names and not set(items) <= set(self.names):
            raise ValueError(f"a list of {' and '.join(self.names)}, separated by commas")
        if not items and not self.empty_allowed:
            raise ValueError(f"at least one of {' and '.join(self.names)}")
        return items


def split_list(text: str) -> tuple[str, ...]:
    """The items of a list-valued setting, each once, in their order."""
    return tuple(dict.fromkeys(item.strip() for item in text.split(",") if item.strip()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One row of a table. `synonym` is the broker's setting that changes the default."""

    name: str
    kind: Kind
    default: str
    documentation: str
    synonym: str | None = None

    @property
    def type(self) -> ConfigType:
        return self.kind.type

    @property
    def is_list(self) -> bool:
        return self.kind.type is ConfigType.LIST

    def parse(self, text: str | None) -> object:
        """Raises `RequestError` INVALID_CONFIG with what to write instead."""
        if text is None:
            raise _invalid(f"{self.name} has no value: give one, or delete it for the default")
        if len(text.encode()) > STRING_BYTES_MAX:
            # A list may be added to again and again, and has to be shown as one string.
            raise _invalid(f"{self.name} would be longer than {STRING_BYTES_MAX} bytes")
        try:
            return self.kind.parse(text)
        except ValueError as error:
            raise _invalid(f'{self.name} = "{text}": it takes {error}') from None


def check_new(table: Mapping[str, Setting], texts: Mapping[str, str]) -> None:
    """Refuse `1_000`, which Python reads, and Kafka's tools do not that are shown it.

    Only in what is asked for now: commands of an earlier version may hold it. Names that are not in
    the table are for others to refuse. Raises `RequestError` INVALID_CONFIG.
    """
    for name, text in texts.items():
        if name in table and has_underscores(table[name].kind, text):
            raise _invalid(f'{name} = "{text}": it takes a number without underscores')


def has_underscores(kind: Kind, text: str) -> bool:
    """Whether it is a number as Python may write it, `1_000`."""
    return kind.type in _NUMBERS and "_" in text


# Any: like dataclasses.field, what stands for the default has the type of the field it is given to.
def setting(
    name: str, kind: Kind, default: str, documentation: str, *, synonym: str | None = None
) -> Any:
    """Declares a table's field: the setting `name`, and its default as text."""
    row = Setting(
        name=name, kind=kind, default=default, documentation=documentation, synonym=synonym
    )
    return field(default=kind.parse(default), metadata={"setting": row})


# Any: dataclasses gives its classes no type of their own.
def settings_of(table: Any) -> dict[str, Setting]:
    """The rows of a table by name, in the order of their declaration."""
    rows = [f.metadata["setting"] for f in fields(table) if "setting" in f.metadata]
    return {row.name: row for row in rows}


def attribute_of(name: str) -> str:
    """The field that holds the setting `name`: dots and dashes become underscores."""
    return name.replace(".", "_").replace("-", "_")


def parse_all(table: Mapping[str, Setting], texts: Mapping[str, str]) -> dict[str, object]:
    """Attribute to value for all of `texts`. Raises `RequestError` INVALID_CONFIG."""
    return {attribute_of(name): find(table, name).parse(text) for name, text in texts.items()}


def find(table: Mapping[str, Setting], name: str) -> Setting:
    """The row called `name`. Raises `RequestError` INVALID_CONFIG, with a near name if there is."""
    row = table.get(name)
    if row is not None:
        return row
    near = _nearest(name, table)
    hint = f"did you mean {near}?" if near else "leave it out"
    raise _invalid(f"there is no config {name}: {hint}")


def _nearest(name: str, table: Mapping[str, Setting]) -> str | None:
    known = {_letters(each): each for each in table}
    # A wrong separator or a missing dot is what happens most; then a prefix, then a slip.
    near = [_letters(name), _letters(name.rpartition(".")[2])]
    near += get_close_matches(near[0], known, n=1, cutoff=0.8)
    return next((known[each] for each in near if each in known), None)


def _letters(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())


def _invalid(sentence: str) -> RequestError:
    return RequestError(ErrorCode.INVALID_CONFIG, sentence)
