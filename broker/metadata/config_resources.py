"""The configs of topics and brokers, as DescribeConfigs shows them: all of them, always.

Tools read everything, change one value and write everything back, so what is at its default is
listed too, and says so (trap M10).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from tidemark.broker.config import SETTINGS, BrokerSettings
from tidemark.broker.config.kinds import as_text
from tidemark.broker.metadata.topic import Topic
from tidemark.partitions.state_machines.config_table import ConfigType
from tidemark.partitions.state_machines.topic_configs import TOPIC_SETTINGS


class ResourceType(IntEnum):
    """Kafka's numbers of what can have configs, as far as ours do."""

    TOPIC = 2
    BROKER = 4


class ConfigSource(IntEnum):
    """Kafka's numbers of where a value comes from."""

    TOPIC = 1
    BROKER_FILE = 4
    DEFAULT = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Synonym:
    """A place where the value of a config could be set."""

    name: str
    value: str | None
    source: ConfigSource


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigEntry:
    """One config with its value. A secret's value is `None`."""

    name: str
    value: str | None
    source: ConfigSource
    type: ConfigType
    documentation: str
    synonyms: Sequence[Synonym]
    is_read_only: bool = False
    is_secret: bool = False


def topic_entries(topic: Topic) -> list[ConfigEntry]:
    """All configs of a topic: its own values, else the broker's defaults, else ours."""
    entries = []
    for name, row in TOPIC_SETTINGS.items():
        broker_name = row.synonym or name
        synonyms = [
            Synonym(name=broker_name, value=row.default, source=ConfigSource.DEFAULT),
        ]
        if name in topic.defaults:
            value = topic.defaults[name]
            synonyms.insert(
                0, Synonym(name=broker_name, value=value, source=ConfigSource.BROKER_FILE)
            )
        if name in topic.overrides:
            value = topic.overrides[name]
            synonyms.insert(0, Synonym(name=name, value=value, source=ConfigSource.TOPIC))
        entries.append(
            ConfigEntry(
                name=name,
                value=synonyms[0].value,
                source=synonyms[0].source,
                type=row.type,
                documentation=row.documentation,
                synonyms=synonyms,
            )
        )
    return entries


def broker_entries(settings: BrokerSettings) -> list[ConfigEntry]:
    """All settings of the broker, and its defaults for topics. None can change while it runs."""
    entries = [
        _broker_entry(
            setting.name,
            as_text(getattr(settings, setting.field)),
            as_text(setting.default),
            type=setting.kind.type,
            documentation=setting.help,
            is_secret=setting.is_secret,
        )
        for setting in SETTINGS.values()
    ]
    for name, row in TOPIC_SETTINGS.items():
        if row.synonym is not None:
            value = settings.topic_defaults.get(name, row.default)
            entries.append(
                _broker_entry(
                    row.synonym,
                    value,
                    row.default,
                    type=row.type,
                    documentation=row.documentation,
                )
            )
    return entries


def _broker_entry(
    name: str,
    value: str,
    default: str,
    *,
    type: ConfigType,
    documentation: str,
    is_secret: bool = False,
) -> ConfigEntry:
    shown = [Synonym(name=name, value=default, source=ConfigSource.DEFAULT)]
    if value != default:
        shown.insert(0, Synonym(name=name, value=value, source=ConfigSource.BROKER_FILE))
    if is_secret:
        shown = [Synonym(name=name, value=None, source=each.source) for each in shown]
    return ConfigEntry(
        name=name,
        value=shown[0].value,
        source=shown[0].source,
        type=type,
        documentation=documentation,
        synonyms=shown,
        is_read_only=True,
        is_secret=is_secret,
    )
