"""What topics have that do not set it themselves: by the broker's file, and by what was set since.

The metadata hold what was set under the brokers' names (`log.retention.ms`); how it is set is in
`running_configs.py`.
"""

from collections.abc import Mapping
from typing import NamedTuple

from tidemark.broker.config import BrokerSettings
from tidemark.broker.config.kafka_names import TOPIC_DEFAULTS
from tidemark.partitions.state_machines.broker_configs import BrokerConfigs
from tidemark.protocol.configs import ConfigSource
from tidemark.protocol.types import NodeId


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


def _by_topic_name(configs: Mapping[str, str]) -> dict[str, str]:
    # One that this version does not know was set by a later one, and means nothing here.
    return {
        TOPIC_DEFAULTS[name]: value for name, value in configs.items() if name in TOPIC_DEFAULTS
    }
