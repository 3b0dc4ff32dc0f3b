"""Which partitions to read, as the options say it."""

import re
from typing import Final, TypeAlias

from tidemark.client.spark.values import Options, is_count, refuse
from tidemark.protocol.errors import ConfigError
from tidemark.protocol.types import TopicPartition
from tidemark.protocol.values import dataclass

SELECTIONS: Final = ("assign", "subscribe", "subscribePattern")


@dataclass(frozen=True, slots=True)
class Subscribe:
    """These topics, with all the partitions they have and will get."""

    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SubscribePattern:
    """All topics whose whole name matches; Python's regular expressions, where Spark has Java's."""

    pattern: str


@dataclass(frozen=True, slots=True)
class Assign:
    """These partitions and no others."""

    partitions: tuple[TopicPartition, ...]


Selection: TypeAlias = Subscribe | SubscribePattern | Assign


def read_selection(options: Options) -> Selection:
    """The one that is set. Raises `ConfigError` if it is not one."""
    chosen = [name for name in SELECTIONS if name in options]
    if len(chosen) != 1:
        raise ConfigError(
            f"set exactly one of the options {', '.join(SELECTIONS)}"
            f" ({' and '.join(chosen) or 'none'} {'are' if chosen else 'is'} set)"
        )
    match chosen[0]:
        case "subscribe":
            return Subscribe(_topics(options.text("subscribe") or ""))
        case "subscribePattern":
            pattern = options.text("subscribePattern") or ""
            try:
                re.compile(pattern)
            except re.error as error:
                raise ConfigError(f"the option subscribePattern: {error}") from error
            return SubscribePattern(pattern)
        case _:
            return Assign(_assigned(options))


def _topics(text: str) -> tuple[str, ...]:
    topics = tuple(sorted({topic.strip() for topic in text.split(",") if topic.strip()}))
    if not topics:
        raise ConfigError("the option subscribe names no topic")
    return topics


def _assigned(options: Options) -> tuple[TopicPartition, ...]:
    example = '{"topic": [0, 1]}'
    found = set()
    for topic, partitions in options.json("assign", example).items():
        if not isinstance(partitions, list) or not all(map(is_count, partitions)):
            refuse("assign", f"JSON like {example}", options.text("assign") or "")
        found |= {TopicPartition(topic, partition) for partition in partitions}
    if not found:
        raise ConfigError("the option assign names no partition")
    return tuple(sorted(found))
