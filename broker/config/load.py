"""One configuration out of all sources, with every mistake told at once.

Precedence: option, environment, file, default.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from tidemark.broker.config.agreement import problems_between
from tidemark.broker.config.kafka_names import TOPIC_DEFAULTS, is_without_meaning
from tidemark.broker.config.kinds import as_text, parse_given
from tidemark.broker.config.names import MEANINGS, Meaning
from tidemark.broker.config.settings import SETTINGS, BrokerSettings
from tidemark.broker.config.sources import (
    Given,
    Source,
    from_environment,
    from_file,
    from_options,
)
from tidemark.partitions.state_machines.config_table import Whole, split_list
from tidemark.partitions.state_machines.topic_configs import TOPIC_SETTINGS
from tidemark.protocol.errors import ConfigError
from tidemark.protocol.values import dataclass

_NOTHING: Mapping[str, str] = MappingProxyType({})
_OF_THE_COMMAND_LINE: Final = frozenset({"bootstrap", "client.config", "config"})
"""What the environment says to the commands: where brokers are, and where this file is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """The settings, and what was passed over."""

    settings: BrokerSettings
    notices: tuple[str, ...]


def load_settings(
    *,
    options: Mapping[str, object] = _NOTHING,
    environment: Mapping[str, str] = _NOTHING,
    file: Path | None = None,
) -> Loaded:
    """The configuration that these sources make. Raises `ConfigError` with a line per mistake."""
    sources = [from_options(options), *from_environment(environment)]
    if file is not None:
        sources.append(from_file(file))
    problems: list[str] = []
    notices: list[str] = []
    chosen: dict[str, Given] = {}
    for source in sources:
        for name, given in _understood(source, problems, notices).items():
            chosen.setdefault(name, given)
    _leave_out_controllers(chosen, sources)
    settings = _structured(chosen, problems)
    if settings is not None:
        problems.extend(problems_between(settings))
    if settings is None or problems:
        raise ConfigError("\n".join(problems))
    return Loaded(settings=settings, notices=tuple(notices))


def _understood(source: Source, problems: list[str], notices: list[str]) -> dict[str, Given]:
    """What one source says, by the setting meant; what it should not say goes to the lists."""
    best: dict[str, tuple[int, Given]] = {}
    spellings: dict[str, str] = {}
    for given in source.given:
        meaning = MEANINGS.get(given.name)
        if meaning is None:
            _note_unknown(given, source, problems, notices)
            continue
        spelling = spellings.setdefault(given.name, given.spelling)
        if spelling != given.spelling:
            both = f"{spelling} and {given.spelling} ({given.origin})"
            problems.append(f"{both} are the same setting: leave one of them out")
        value = _scaled(given, meaning, problems)
        if meaning.setting not in best or meaning.rank < best[meaning.setting][0]:
            best[meaning.setting] = (meaning.rank, replace(given, value=value))
    return {name: given for name, (_, given) in best.items()}


def _note_unknown(given: Given, source: Source, problems: list[str], notices: list[str]) -> None:
    if source.is_kafka and is_without_meaning(given.name):
        notices.append(f"{given.name} ({given.origin}) has no meaning here and is passed over")
    elif source.is_strict:
        problems.append(f"{given.name} ({given.origin}) is not a setting{_advice(given.name)}")
    elif not source.is_kafka and given.name not in _OF_THE_COMMAND_LINE:
        notices.append(f"{given.origin} is not a setting and is passed over{_advice(given.name)}")


def _advice(name: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, MEANINGS, n=1)
    return f"; did you mean {near[0]}?" if near else ""


def _scaled(given: Given, meaning: Meaning, problems: list[str]) -> object:
    if meaning.scale == 1:
        return given.value
    try:
        number = parse_given(Whole(-1), as_text(given.value))
    except ValueError as error:
        problems.append(_problem(given, str(error)))
        return "0"
    assert isinstance(number, int)
    return str(number if number < 0 else number * meaning.scale)


def _leave_out_controllers(chosen: dict[str, Given], sources: Iterable[Source]) -> None:
    """Take Kafka's controller listeners out: its metadata quorum is not part of this broker."""
    controllers = {
        name.upper()
        for source in sources
        for given in source.given
        if given.name == "controller.listener.names"
        for name in split_list(as_text(given.value))
    }
    for setting in ("listeners", "advertised.listeners") if controllers else ():
        if setting in chosen:
            kept = [
                item
                for item in split_list(as_text(chosen[setting].value))
                if item.partition("://")[0].upper() not in controllers
            ]
            chosen[setting] = replace(chosen[setting], value=",".join(kept))


def _structured(chosen: Mapping[str, Given], problems: list[str]) -> BrokerSettings | None:
    # Any: each is of its field's type.
    values: dict[str, Any] = {"topic_defaults": _topic_defaults(chosen, problems)}
    before = len(problems)
    for name, setting in SETTINGS.items():
        if name in chosen:
            given = chosen[name]
            try:
                values[setting.field] = setting.parse(given.value)
            except ValueError as error:
                problems.append(_problem(given, str(error), is_secret=setting.is_secret))
    return BrokerSettings(**values) if len(problems) == before else None


def _topic_defaults(chosen: Mapping[str, Given], problems: list[str]) -> Mapping[str, str]:
    defaults = {}
    for broker_name, given in chosen.items():
        if broker_name not in TOPIC_DEFAULTS:
            continue
        name, text = TOPIC_DEFAULTS[broker_name], as_text(given.value)
        try:
            parse_given(TOPIC_SETTINGS[name].kind, text)
        except ValueError as error:
            problems.append(_problem(given, str(error)))
        defaults[name] = text
    return MappingProxyType(defaults)


def _problem(given: Given, takes: str, *, is_secret: bool = False) -> str:
    value = "" if is_secret else f" = {as_text(given.value)!r}"
    return f"{given.name}{value} ({given.origin}): it takes {takes}"
