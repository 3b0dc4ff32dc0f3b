"""What is known about one setting beside its value, and how a settings class declares it."""

from typing import TypeVar

import attrs

from tidemark.broker.config.kinds import HasSeparator, TakesTables, as_text, parse_given
from tidemark.partitions.state_machines.config_table import Kind
from tidemark.protocol.values import dataclass

T = TypeVar("T")
_KEY = "tidemark.setting"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One setting as every source knows it.

    `name` is Kafka's name where Kafka has it. Sources may write `_` or `-` for a dot.
    """

    name: str
    field: str
    section: str
    kind: Kind
    default: object
    help: str
    aliases: tuple[str, ...] = ()
    is_secret: bool = False

    def parse(self, given: object) -> object:
        """The value that a source gave. Raises `ValueError` with what this setting takes."""
        is_tables = isinstance(given, list) and any(isinstance(item, dict) for item in given)
        if is_tables and isinstance(self.kind, TakesTables):
            assert isinstance(given, list)
            return self.kind.parse_tables(given)
        return parse_given(self.kind, self.text(given))

    def text(self, value: object) -> str:
        """A value, or the list of its items, as text that `parse` reads back."""
        if isinstance(self.kind, HasSeparator):
            return as_text(value, self.kind.separator)
        return as_text(value)


def setting(
    name: str,
    kind: Kind,
    default: T,
    help: str,
    *,
    section: str,
    aliases: tuple[str, ...] = (),
    is_secret: bool = False,
) -> T:
    """A field of a settings class; it has the type of its default, as `attrs.field` has."""
    facts = {
        "name": name,
        "kind": kind,
        "help": help,
        "section": section,
        "aliases": aliases,
        "is_secret": is_secret,
    }
    return attrs.field(default=default, metadata={_KEY: facts})


def settings_of(cls: type[attrs.AttrsInstance]) -> dict[str, Setting]:
    """The settings that a class declares, by name, in its order."""
    table = [
        Setting(field=field.name, default=field.default, **field.metadata[_KEY])
        for field in attrs.fields(cls)
        if _KEY in field.metadata
    ]
    return {setting.name: setting for setting in table}


def dotted(name: str) -> str:
    """The one spelling of a setting's name: no name has a real dash or underscore."""
    return name.strip().lower().replace("_", ".").replace("-", ".")
