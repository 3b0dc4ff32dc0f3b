"""The kinds of value a setting can have, and how what a source gave becomes one.

Every source gives text, but TOML gives numbers, truth values and lists too. `parse` raises
`ValueError` with a phrase that says what is expected; the loader puts the setting's name and where
the value came from in front of it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Generic, TypeVar

from tidemark.broker.config.addresses import Address, Endpoint, parse_address, parse_endpoint

T = TypeVar("T")
LARGEST_INT = 2**31 - 1
LARGEST_LONG = 2**63 - 1


class ConfigType(IntEnum):
    """How DescribeConfigs numbers the type of a value."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    LONG = 5
    LIST = 7
    PASSWORD = 9


@dataclass(frozen=True, slots=True)
class Kind(Generic[T]):
    """One kind of value; `expects` ends the sentence "must be …"."""

    type: ConfigType
    expects: str
    parse: Callable[[object], T]


def integer(low: int = 0, high: int = LARGEST_LONG) -> Kind[int]:
    """A whole number from `low` to `high`, both included."""
    limit = f", {low} or more" if high >= LARGEST_INT else f" from {low} to {high}"
    expects = f"a whole number{limit}"

    def parse(given: object) -> int:
        # A bool is an int to Python, but `num.partitions = true` is a mistake.
        if isinstance(given, str | int) and not isinstance(given, bool):
            try:
                number = int(given)
            except ValueError:
                raise ValueError(f"must be {expects}") from None
            if low <= number <= high:
                return number
        raise ValueError(f"must be {expects}")

    return Kind(ConfigType.LONG if high > LARGEST_INT else ConfigType.INT, expects, parse)


def boolean() -> Kind[bool]:
    def parse(given: object) -> bool:
        truth = {True: True, False: False, "true": True, "false": False}
        key = given.strip().lower() if isinstance(given, str) else given
        if not isinstance(key, str | bool) or key not in truth:
            raise ValueError("must be true or false")
        return truth[key]

    return Kind(ConfigType.BOOLEAN, "true or false", parse)


def text(expects: str = "text") -> Kind[str]:
    """Any text that is not empty."""

    def parse(given: object) -> str:
        # `node.rack = 3` in TOML is plainly meant as the text "3".
        if isinstance(given, int) and not isinstance(given, bool):
            return str(given)
        if not isinstance(given, str) or not given.strip():
            raise ValueError(f"must be {expects}")
        return given.strip()

    return Kind(ConfigType.STRING, expects, parse)


def choice(*choices: str) -> Kind[str]:
    expects = f"{', '.join(choices[:-1])} or {choices[-1]}"

    def parse(given: object) -> str:
        chosen = given.strip().lower() if isinstance(given, str) else None
        if chosen not in choices:
            raise ValueError(f"must be {expects}")
        return chosen

    return Kind(ConfigType.STRING, expects, parse)


def folder() -> Kind[Path]:
    expects = "one folder"

    def parse(given: object) -> Path:
        if not isinstance(given, str) or not given.strip():
            raise ValueError(f"must be {expects}")
        if "," in given:
            raise ValueError("must be one folder; run one broker for each disk instead")
        return Path(given.strip()).expanduser()

    return Kind(ConfigType.STRING, expects, parse)


def address() -> Kind[Address]:
    return Kind(ConfigType.STRING, "an address host:port", lambda given: parse_address(str(given)))


def optional(kind: Kind[T]) -> Kind[T | None]:
    """`kind`, or nothing: empty text or the word "none"."""

    def parse(given: object) -> T | None:
        if isinstance(given, str) and given.strip().lower() in ("", "none"):
            return None
        return kind.parse(given)

    return Kind(kind.type, f"{kind.expects}, or none", parse)


def parse_items(given: object) -> list[str]:
    """A list, from TOML's own or from text with commas."""
    if isinstance(given, str):
        return [item.strip() for item in given.split(",") if item.strip()]
    if isinstance(given, list) and all(isinstance(item, str) for item in given):
        return [item.strip() for item in given]
    raise ValueError("must be a list of texts, or one text with commas")


def endpoints() -> Kind[tuple[Endpoint, ...]]:
    def parse(given: object) -> tuple[Endpoint, ...]:
        return tuple(parse_endpoint(item) for item in parse_items(given))

    return Kind(ConfigType.LIST, "listeners NAME://host:port with commas between", parse)


def names(*allowed: str) -> Kind[tuple[str, ...]]:
    """A list, each item one of `allowed`."""
    expects = f"a list with commas of {', '.join(allowed)}"

    def parse(given: object) -> tuple[str, ...]:
        items = tuple(item.upper() for item in parse_items(given))
        if not items or not set(items) <= set(allowed):
            raise ValueError(f"must be {expects}")
        return items

    return Kind(ConfigType.LIST, expects, parse)


def pairs() -> Kind[tuple[tuple[str, str], ...]]:
    """`NAME:VALUE` with commas between."""

    def parse(given: object) -> tuple[tuple[str, str], ...]:
        found = []
        for item in parse_items(given):
            name, colon, value = item.partition(":")
            if not colon:
                raise ValueError(f"{item!r} is not NAME:VALUE")
            found.append((name.strip().upper(), value.strip().upper()))
        return tuple(found)

    return Kind(ConfigType.LIST, "a list with commas of NAME:VALUE", parse)


def as_text(value: object) -> str:
    """A setting's value as its sources would write it; nothing at all is empty text."""
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case tuple():
            return ",".join(
                ":".join(item) if isinstance(item, tuple) else str(item) for item in value
            )
        case _:
            return str(value)
