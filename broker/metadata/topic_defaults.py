"""What topics have that do not set it themselves: by the broker's file, and by what was set since.

Kafka's brokers can be given new defaults for their topics while they run: one broker, or all of
them. It is the only thing that changes so here; everything else is in a broker's file, where it
can be seen. The metadata hold what was set under the brokers' names (`log.retention.ms`).
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from tidemark.broker.config import SETTINGS, BrokerSettings
from tidemark.broker.config.kafka_names import (
    SCALED_TOPIC_DEFAULTS,
    TOPIC_DEFAULTS,
    is_without_meaning,
)
from tidemark.partitions.state_machines.broker_configs import BrokerConfigs
from tidemark.partitions.state_machines.config_changes import ConfigChange, altered
from tidemark.partitions.state_machines.topic_configs import TopicConfig
from tidemark.protocol.configs import ConfigSource
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.types import NodeId

_BROKERS_NAME: Final[Mapping[str, str]] = {topic: name for name, topic in TOPIC_DEFAULTS.items()}
"""Of the default of a topic config."""


class Layer(NamedTuple):
    """Values that one place sets, by the topic configs' own names."""

    source: ConfigSource
    values: Mapping[str, str]


class TopicDefaults(NamedTuple):
    """The defaults of one broker at one moment."""

    layers: tuple[Layer, ...]
    """What comes first holds."""

    @property
    def values(self) -> dict[str, str]:
        merged: dict[str, str] = {}
        for layer in reversed(self.layers):
            merged |= layer.values
        return merged

    @property
    def of_all_brokers(self) -> "TopicDefaults":
        """Only what was set for all brokers."""
        layers = (
            each for each in self.layers if each.source is ConfigSource.DYNAMIC_DEFAULT_BROKER
        )
        return TopicDefaults(tuple(layers))


def topic_defaults(
    settings: BrokerSettings, node_id: NodeId, configs: BrokerConfigs
) -> TopicDefaults:
    """The defaults of that broker, whose file says `settings`."""
    return TopicDefaults(
        (
            Layer(ConfigSource.DYNAMIC_BROKER, _by_topic_name(configs.of(node_id))),
            Layer(ConfigSource.DYNAMIC_DEFAULT_BROKER, _by_topic_name(configs.of(None))),
            Layer(ConfigSource.STATIC_BROKER, settings.topic_defaults),
        )
    )


def replaced(configs: Mapping[str, str]) -> dict[str, str]:
    """The configs of brokers as they are to be kept. Raises `RequestError` INVALID_CONFIG for those
    that cannot change while a broker runs."""
    TopicConfig.from_overrides({_topic_name(name): value for name, value in configs.items()})
    return dict(configs)


def changed(before: Mapping[str, str], changes: Iterable[ConfigChange]) -> dict[str, str]:
    """The configs of brokers after `changes`, all of them or none. Raises `RequestError`."""
    after = altered(
        _by_topic_name(before),
        [
            ConfigChange(name=_topic_name(each.name), op=each.op, value=each.value)
            for each in changes
        ],
    )
    return {_BROKERS_NAME[name]: value for name, value in after.items()}


def _by_topic_name(configs: Mapping[str, str]) -> dict[str, str]:
    # One that this version does not know was set by a later one, and means nothing here.
    return {
        TOPIC_DEFAULTS[name]: value for name, value in configs.items() if name in TOPIC_DEFAULTS
    }


def _topic_name(name: str) -> str:
    topic_name = TOPIC_DEFAULTS.get(name)
    if topic_name is not None:
        return topic_name
    if name in SETTINGS:
        why = "does not change while a broker runs: change its file and start it again"
    elif name in SCALED_TOPIC_DEFAULTS:
        why = f"does not change while a broker runs: set {SCALED_TOPIC_DEFAULTS[name][0]}"
    elif name.endswith(".replication.throttled.rate"):
        why = (
            "is not there: replicas are copied within reassignment.bytes.per.second, a setting of "
            "each broker's file; do without a throttle"
        )
    elif is_without_meaning(name):
        why = "has no meaning in Tidemark: leave it out"
    else:
        why = "is no config of a broker: leave it out"
    raise RequestError(ErrorCode.INVALID_CONFIG, f"{name} {why}")
