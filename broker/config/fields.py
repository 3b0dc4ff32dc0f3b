"""What is known about one setting beside its value, and how a settings class declares it."""

from typing import Any, TypeVar

import attrs

from tidemark.broker.config.kinds import Kind

T = TypeVar("T")
_KEY = "tidemark.setting"


@attrs.frozen(kw_only=True)
class Setting:
    """One setting as every source knows it.

    `name` is Kafka's name where Kafka has it. Sources may write `_` or `-` for a dot.
    """

    name: str
    field: str
    section: str
    # Any: a table of settings has values of many types; each field keeps its own.
    kind: Kind[Any]
    default: object
    help: str
    aliases: tuple[str, ...] = ()
    is_secret: bool = False

    @property
    def environment(self) -> str:
        return environment_name(self.name)


def setting(
    name: str,
    kind: Kind[T],
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
    declared = [field for field in attrs.fields(cls) if _KEY in field.metadata]
    table = [
        Setting(field=field.name, default=field.default, **field.metadata[_KEY])
        for field in declared
    ]
    return {setting.name: setting for setting in table}


def dotted(name: str) -> str:
    """The one spelling of a setting's name: no name has a real dash or underscore."""
    return name.strip().lower().replace("_", ".").replace("-", ".")


def environment_name(name: str) -> str:
    return "TIDEMARK_" + name.upper().replace(".", "_")
