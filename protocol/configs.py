"""What has configs, where their values come from and how they are changed, in Kafka's numbers."""

from enum import IntEnum


class ConfigResourceType(IntEnum):
    """What has configs, as far as it does here."""

    TOPIC = 2
    BROKER = 4
    GROUP = 32


class ConfigSource(IntEnum):
    """Where a config's value comes from."""

    UNKNOWN = 0
    TOPIC = 1
    DYNAMIC_BROKER = 2
    """Set for one broker while it ran."""
    DYNAMIC_DEFAULT_BROKER = 3
    """Set for all of them."""
    STATIC_BROKER = 4
    """The broker's file."""
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class AlterOp(IntEnum):
    """What IncrementalAlterConfigs does to one config."""

    SET = 0
    DELETE = 1
    """Back to its default."""
    APPEND = 2
    SUBTRACT = 3
