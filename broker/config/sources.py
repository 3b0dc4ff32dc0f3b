"""Where settings come from: a file, the environment, options. Each gives names and raw values."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from tidemark.broker.config.fields import dotted
from tidemark.broker.config.properties import parse_properties
from tidemark.protocol.errors import ConfigError
from tidemark.protocol.values import dataclass


@dataclass(frozen=True, slots=True)
class Given:
    """What one source says about one setting."""

    name: str
    value: object
    origin: str
    spelling: str = ""
    """As it is written there, where a name can be written in several ways."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One source. A strict one holds nothing but settings, so an unknown name is a mistake.

    `is_kafka` is one written for Kafka, which may hold what means nothing here.
    """

    given: tuple[Given, ...]
    is_strict: bool
    is_kafka: bool = False


def from_options(options: Mapping[str, object]) -> Source:
    """`--set name=value` and the options that are short for one."""
    given = tuple(Given(dotted(name), value, "option", name) for name, value in options.items())
    return Source(given=given, is_strict=True)


def from_environment(environment: Mapping[str, str]) -> list[Source]:
    """`TIDEMARK_…` first, then `KAFKA_…` as Kafka's own container image has it.

    Neither is strict. Other programs set variables with these prefixes; Kubernetes does for a
    service that happens to be called tidemark or kafka.
    """
    return [_from_prefix(environment, "TIDEMARK_"), _from_prefix(environment, "KAFKA_")]


def _from_prefix(environment: Mapping[str, str], prefix: str) -> Source:
    given = tuple(
        Given(dotted(variable.removeprefix(prefix)), value, f"environment {variable}")
        for variable, value in sorted(environment.items())
        if variable.startswith(prefix)
    )
    return Source(given=given, is_strict=False, is_kafka=prefix == "KAFKA_")


def from_file(path: Path) -> Source:
    """A TOML file, or one of Kafka's `server.properties`, told apart by the name's ending.

    With neither ending, it is TOML if it parses as TOML. Raises `ConfigError` if it cannot be
    read.
    """
    try:
        content = path.read_text(encoding="utf-8-sig")  # Editors on Windows begin with a mark.
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise ConfigError(f"cannot read the configuration file {path}: {reason}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"the configuration file {path} is not text in UTF-8") from error
    if path.suffix == ".properties":
        return _from_properties(path, content)
    import tomllib  # which most starts do without

    try:
        table = tomllib.loads(content)
    except tomllib.TOMLDecodeError as error:
        if path.suffix == ".toml":
            raise ConfigError(f"the configuration file {path} is not TOML: {error}") from error
        return _from_properties(path, content)
    given = tuple(
        Given(dotted(name), value, str(path), spelling) for name, spelling, value in _flat(table)
    )
    return Source(given=given, is_strict=True)


def _from_properties(path: Path, content: str) -> Source:
    properties = parse_properties(content)
    given = tuple(Given(dotted(name), value, str(path)) for name, value in properties.items())
    return Source(given=given, is_strict=True, is_kafka=True)


def _flat(
    table: Mapping[str, object], name: str = "", spelling: str = ""
) -> Iterator[tuple[str, str, object]]:
    """Kafka's dotted names, however the dots were written: quoted, bare or as tables; and how."""
    for key, value in table.items():
        here = name + key, spelling + (f'"{key}"' if "." in key else key)
        if isinstance(value, dict):
            yield from _flat(value, f"{here[0]}.", f"{here[1]}.")
        else:
            yield *here, value
