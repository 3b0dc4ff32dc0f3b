"""What a topic's configs promise about a record that is acknowledged, in plain words."""

from collections.abc import Mapping
from typing import Final

_PROMISES: Final = {
    "commit": "synced to disk before it is acknowledged; survives a loss of power",
    "os": "in the operating system's page cache when it is acknowledged; survives a crash of the "
    "broker, not a loss of power",
}

# What Kafka itself does, unless told to flush after every message.
_KAFKA: Final = (
    "in the page cache of the replicas in sync when it is acknowledged; survives a crash of the "
    "brokers, not a loss of power of all of them"
)


def describe_durability(configs: Mapping[str, str | None]) -> str:
    """One sentence about a record that was acknowledged with acks=all.

    Brokers other than Tidemark's have no `flush` config; what they do is said by Kafka's own.
    """
    flush = configs.get("flush")
    if flush is not None:
        return f"{_PROMISES.get(flush, 'unknown')} (flush={flush})"
    if configs.get("flush.messages") == "1":
        return f"{_PROMISES['commit']} (flush.messages=1)"
    return _KAFKA
