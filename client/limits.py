"""What settings may be, checked where they are given.

A number that the protocol cannot say, or a time that never comes, would otherwise end a background
task, or have it wait for ever.
"""

import math
from collections.abc import Mapping
from typing import Final

from tidemark.protocol.types import TopicPartition

INT16_MAX: Final = 2**15 - 1
INT32_MAX: Final = 2**31 - 1
INT64_MAX: Final = 2**63 - 1


def require_whole(name: str, value: object, *, least: int = 0, most: int = INT32_MAX) -> None:
    """Raise `TypeError` unless it is a whole number, `ValueError` unless it is in the limits."""
    if not isinstance(value, int):
        raise TypeError(f"{name} is a whole number, not {value!r}")
    if not least <= value <= most:
        raise ValueError(f"{name} is from {least} to {most}, not {value}")


def require_seconds(name: str, value: object, *, least: float = 0.001) -> None:
    """Raise unless it is a time that passes, and that milliseconds in 32 bits can say."""
    if not isinstance(value, int | float):
        raise TypeError(f"{name} is a number of seconds, not {value!r}")
    if not least <= value <= INT32_MAX / 1000:  # which NaN is not, either
        raise ValueError(f"{name} is from {least:g} to {INT32_MAX / 1000:.0f}, not {value}")


def require_patience(name: str, value: object) -> None:
    """As `require_seconds`, for what is only counted here: it may be infinite."""
    if not isinstance(value, int | float):
        raise TypeError(f"{name} is a number of seconds, not {value!r}")
    if math.isnan(value) or value < 0:
        raise ValueError(f"{name} is at least 0, not {value}")


def require_name(name: str, value: object, *, may_be_empty: bool = False) -> None:
    """Raise `TypeError` unless it is a string, `ValueError` if it is empty, too long or not
    UTF-8."""
    if not isinstance(value, str):
        raise TypeError(f"{name} is a str, not {value!r}")
    if not (value or may_be_empty):
        raise ValueError(f"{name} is empty")
    try:
        size_bytes = len(value.encode())
    except UnicodeEncodeError:
        raise ValueError(f"{name} is text that UTF-8 can say, not {value!r}") from None
    if size_bytes > INT16_MAX:
        raise ValueError(f"{name} has at most {INT16_MAX} bytes, not {size_bytes}")


def require_callable(name: str, value: object) -> None:
    """Raise `TypeError` unless it can be called."""
    if not callable(value):
        raise TypeError(f"{name} is a function, not {value!r}")


def require_topic(name: object) -> None:
    """As `require_name`; what a topic may be called is for brokers to say."""
    require_name("a topic's name", name, may_be_empty=True)


def require_partition(given: object) -> None:
    """Raise `TypeError` unless it is a `TopicPartition` of a whole number, and the topic's name is
    one that can be said."""
    if not isinstance(given, TopicPartition):
        raise TypeError(f"a partition is a TopicPartition, not {given!r}")
    require_topic(given.topic)
    if not isinstance(given.partition, int):
        raise TypeError(f"a partition is a whole number, not {given.partition!r}")


def require_by_partition(name: str, given: object, example: str) -> None:
    """Raise `TypeError` unless it is a mapping, of `TopicPartition`s.

    `example`: a value, as it is written in a program.
    """
    if not isinstance(given, Mapping):
        raise TypeError(
            f"{name} are by TopicPartition, as in {{partition: {example}}}, not {given!r}"
        )
    for each in given:
        require_partition(each)


def require_configs(configs: Mapping[str, str | None]) -> None:
    """Raise `TypeError` unless names and values are text, as Kafka's configs all are."""
    for name, value in configs.items():
        require_name("a config's name", name)
        if not isinstance(value, str | None):
            raise TypeError(f"the config {name} is a str, not {value!r}")
