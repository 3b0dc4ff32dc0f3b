"""Where the value of a config comes from."""

from enum import IntEnum


class ConfigSource(IntEnum):
    """Kafka's numbers of the places."""

    TOPIC = 1
    BROKER = 2
    """Set for one broker while it ran."""
    ALL_BROKERS = 3
    """Set for all of them."""
    BROKER_FILE = 4
    DEFAULT = 5
    GROUP = 8
