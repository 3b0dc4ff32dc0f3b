"""The kinds of value that only a broker's settings have; the others are those of topic configs.

Every source gives text, or what TOML makes of it, which `as_text` turns back. `parse` raises
`ValueError` with what the setting takes; the loader puts the setting's name, its value and where
that came from in front of it.
"""

from pathlib import Path
from typing import Final, Protocol, runtime_checkable

from tidemark.broker.config.addresses import Address, Endpoint, parse_address, parse_endpoint
from tidemark.partitions.state_machines.config_table import (
    ConfigType,
    Kind,
    has_underscores,
    split_list,
)
from tidemark.protocol.values import dataclass

_TEXT_BYTES_MAX: Final = 0x7FFF


@runtime_checkable
class TakesTables(Protocol):
    """A kind whose value may be a list of tables in TOML."""

    def parse_tables(self, tables: list[object]) -> object: ...


@runtime_checkable
class HasSeparator(Protocol):
    """A kind with several items in its value, which may have commas."""

    @property
    def separator(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Text:
    """Any text that is not empty, and fits into a field of the protocol."""

    type: ConfigType = ConfigType.STRING

    def parse(self, text: str) -> str:
        if not text.strip():
            raise ValueError("some text")
        try:
            size_bytes = len(text.strip().encode())
        except UnicodeEncodeError:  # of an argument, or an environment variable
            raise ValueError("text in UTF-8") from None
        if size_bytes > _TEXT_BYTES_MAX:
            raise ValueError(f"text of at most {_TEXT_BYTES_MAX} bytes")
        return text.strip()


@dataclass(frozen=True, slots=True)
class Folder:
    type: ConfigType = ConfigType.STRING

    def parse(self, text: str) -> Path:
        if not text.strip():
            raise ValueError("the path of a folder")
        if "," in text:
            raise ValueError("one folder; run a broker for each disk instead")
        return Path(text.strip()).expanduser()


@dataclass(frozen=True, slots=True)
class File:
    type: ConfigType = ConfigType.STRING

    def parse(self, text: str) -> Path:
        if not text.strip():
            raise ValueError("the path of a file")
        return Path(text.strip()).expanduser()


@dataclass(frozen=True, slots=True)
class AddressText:
    type: ConfigType = ConfigType.STRING

    def parse(self, text: str) -> Address:
        return parse_address(text)


@dataclass(frozen=True, slots=True)
class AddressList:
    """Addresses to connect to, with commas between."""

    type: ConfigType = ConfigType.LIST

    def parse(self, text: str) -> tuple[Address, ...]:
        addresses = tuple(parse_address(item) for item in split_list(text))
        if any(address.is_wildcard or not address.port for address in addresses):
            raise ValueError("addresses to connect to, with a host and a port each")
        return addresses


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Listeners, with commas between."""

    type: ConfigType = ConfigType.LIST

    def parse(self, text: str) -> tuple[Endpoint, ...]:
        return tuple(parse_endpoint(item) for item in split_list(text))


@dataclass(frozen=True, slots=True)
class Pairs:
    """`NAME:VALUE`, with commas between."""

    type: ConfigType = ConfigType.LIST

    def parse(self, text: str) -> tuple[tuple[str, str], ...]:
        found = []
        for item in split_list(text):
            name, colon, value = item.upper().partition(":")
            if not colon:
                raise ValueError("NAME:VALUE, with commas between")
            found.append((name.strip(), value.strip()))
        return tuple(found)


@dataclass(frozen=True, slots=True)
class Optionally:
    """Another kind, or nothing: empty text or the word "none"."""

    kind: Kind

    @property
    def type(self) -> ConfigType:
        return self.kind.type

    def parse(self, text: str) -> object:
        if text.strip().lower() in ("", "none"):
            return None
        try:
            return self.kind.parse(text)
        except ValueError as error:
            raise ValueError(f"{error}, or none") from None


def parse_given(kind: Kind, text: str) -> object:
    """As the kind does, but for `1_000`: no file for Kafka could have it."""
    if has_underscores(kind, text):
        raise ValueError("a number without underscores")
    return kind.parse(text)


def as_text(value: object, separator: str = ",") -> str:
    """A value as text; nothing at all is empty text."""
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case tuple() | list():
            items = (":".join(item) if isinstance(item, tuple) else str(item) for item in value)
            return separator.join(items)
        case _:
            return str(value)
