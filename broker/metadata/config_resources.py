"""The configs of topics, brokers and groups, as DescribeConfigs shows them: all of them, always.

Tools read everything, change one value and write everything back, so what is at its default is
listed too, and says so (trap M10).
"""

from collections.abc import Mapping, Sequence

from tidemark.broker.config import SETTINGS, BrokerSettings
from tidemark.broker.config.kinds import as_text
from tidemark.broker.metadata.topic import Topic
from tidemark.broker.metadata.topic_defaults import TopicDefaults
from tidemark.partitions.state_machines.broker_configs import BrokerConfigs
from tidemark.partitions.state_machines.config_table import ConfigType, Setting
from tidemark.partitions.state_machines.group_configs import GROUP_SETTINGS
from tidemark.partitions.state_machines.throttle_configs import THROTTLE_SETTINGS
from tidemark.partitions.state_machines.topic_configs import TOPIC_SETTINGS
from tidemark.protocol.configs import ConfigSource
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.types import NodeId
from tidemark.protocol.values import dataclass


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


def unset_entries(defaults: TopicDefaults) -> dict[str, ConfigEntry]:
    """All configs of a topic that sets none itself: as brokers have them, else ours."""
    return {
        name: _entry(name, row, _default_synonyms(row, defaults))
        for name, row in TOPIC_SETTINGS.items()
    }


def topic_entries(topic: Topic, unset: Mapping[str, ConfigEntry]) -> list[ConfigEntry]:
    """All configs of a topic: its own values, and the very entries that are `unset` for the rest,
    which thousands of topics have alike."""
    entries = dict(unset)
    for name, value in topic.overrides.items():
        own = Synonym(name=name, value=value, source=ConfigSource.TOPIC)
        entries[name] = _entry(name, TOPIC_SETTINGS[name], [own, *unset[name].synonyms])
    return list(entries.values())


def check_group(name: str) -> None:
    """Raises `RequestError` for a name that no group can have."""
    if not name:
        raise RequestError(ErrorCode.INVALID_REQUEST, "name the group whose configs are meant")


def group_entries(configs: Mapping[str, str], settings: BrokerSettings) -> list[ConfigEntry]:
    """All configs of a group: its own, else as this broker has them. The group need not exist."""
    entries = []
    for name, row in GROUP_SETTINGS.items():
        assert row.synonym is not None, "a group's config has a default at the broker"
        at_broker = SETTINGS[row.synonym]
        synonyms = _broker_synonyms(
            row.synonym, as_text(getattr(settings, at_broker.field)), as_text(at_broker.default)
        )
        if name in configs:
            own = Synonym(name=name, value=configs[name], source=ConfigSource.GROUP)
            synonyms.insert(0, own)
        entries.append(_entry(name, row, synonyms))
    return entries


def broker_entries(settings: BrokerSettings, defaults: TopicDefaults) -> list[ConfigEntry]:
    """All settings of the broker, and its defaults for topics: these can change while it runs."""
    entries = [
        _broker_entry(
            setting.name,
            setting.text(getattr(settings, setting.field)),
            setting.text(setting.default),
            type=setting.kind.type,
            documentation=setting.help,
            is_secret=setting.is_secret,
        )
        for setting in SETTINGS.values()
    ]
    return entries + [
        _entry(row.synonym, row, _default_synonyms(row, defaults))
        for row in TOPIC_SETTINGS.values()
        if row.synonym is not None
    ]


def all_brokers_entries(defaults: TopicDefaults) -> list[ConfigEntry]:
    """What was set for all brokers while they ran, and nothing else."""
    return [
        entry
        for row in TOPIC_SETTINGS.values()
        if row.synonym is not None
        for entry in [_entry(row.synonym, row, _default_synonyms(row, defaults.of_all_brokers))]
        if entry.source is ConfigSource.DYNAMIC_DEFAULT_BROKER
    ]


def throttle_entries(configs: BrokerConfigs, node_id: NodeId | None) -> list[ConfigEntry]:
    """The throttles that are set for a broker, or for all. No others: tools take whatever has a
    value for set."""
    places = [(configs.of(None), ConfigSource.DYNAMIC_DEFAULT_BROKER)]
    if node_id is not None:
        places.insert(0, (configs.of(node_id), ConfigSource.DYNAMIC_BROKER))
    entries = []
    for name, row in THROTTLE_SETTINGS.items():
        synonyms = [
            Synonym(name=name, value=values[name], source=source)
            for values, source in places
            if name in values
        ]
        if synonyms:
            entries.append(_entry(name, row, synonyms))
    return entries


def _default_synonyms(row: Setting, defaults: TopicDefaults) -> list[Synonym]:
    """Where a topic's config comes from that it does not set itself; the first one holds."""
    name = row.synonym or row.name
    given = [
        Synonym(name=name, value=layer.values[row.name], source=layer.source)
        for layer in defaults.layers
        if row.name in layer.values
    ]
    return [*given, Synonym(name=name, value=row.default, source=ConfigSource.DEFAULT)]


def _entry(name: str, row: Setting, synonyms: list[Synonym]) -> ConfigEntry:
    return ConfigEntry(
        name=name,
        value=synonyms[0].value,
        source=synonyms[0].source,
        type=row.type,
        documentation=row.documentation,
        synonyms=synonyms,
    )


def _broker_entry(
    name: str,
    value: str,
    default: str,
    *,
    type: ConfigType,
    documentation: str,
    is_secret: bool = False,
) -> ConfigEntry:
    shown = _broker_synonyms(name, value, default)
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


def _broker_synonyms(name: str, value: str, default: str) -> list[Synonym]:
    """Where a broker's setting comes from: its file, if that says something else than ours."""
    shown = [Synonym(name=name, value=default, source=ConfigSource.DEFAULT)]
    if value != default:
        shown.insert(0, Synonym(name=name, value=value, source=ConfigSource.STATIC_BROKER))
    return shown
