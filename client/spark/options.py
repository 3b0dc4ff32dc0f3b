"""The options of the source: Spark's Kafka source's names, checked before anything is asked.

Options arrive with lower-cased keys. What cannot be honoured is refused, never ignored: an option
that is silently not applied shows as wrong rows.
"""

import difflib
import json
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from tidemark.client.offsets import Isolation
from tidemark.client.read_levels import ReadLevel, read_level
from tidemark.client.settings import ClientSettings
from tidemark.protocol.errors import ConfigError
from tidemark.protocol.types import TopicPartition

log = logging.getLogger(__name__)

EARLIEST: Final = -2
LATEST: Final = -1

Place: TypeAlias = Literal["earliest", "latest"] | Mapping[TopicPartition, int]
"""Where in each partition; in the mapping, `EARLIEST` and `LATEST` stand for the log's ends."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """What to read, as a value that travels to the tasks."""

    bootstrap: str
    selection: Selection
    starting: Place
    ending: Place
    include_headers: bool = False
    fail_on_data_loss: bool = True
    min_partitions: int = 0
    max_offsets_per_trigger: int | None = None
    batch_bytes: int = 1 << 20
    offset_cache_ms: int = 100
    isolation: Isolation = Isolation.READ_UNCOMMITTED
    level: ReadLevel = ReadLevel.COMMITTED
    client: ClientSettings = field(
        default_factory=lambda: ClientSettings(client_id="tidemark-spark")
    )


_SELECTIONS: Final = ("assign", "subscribe", "subscribePattern")
_KNOWN: Final = (
    *_SELECTIONS,
    "bootstrap",
    "startingOffsets",
    "endingOffsets",
    "includeHeaders",
    "failOnDataLoss",
    "minPartitions",
    "maxOffsetsPerTrigger",
    "batchBytes",
    "offsetCacheMs",
    "readLevel",
)
_KAFKA_KNOWN: Final = (
    "kafka.bootstrap.servers",
    "kafka.client.id",
    "kafka.client.rack",
    "kafka.isolation.level",
    "kafka.request.timeout.ms",
)
# Of Spark's own source, without effect here: groups are only a label there, and retries are the
# client's.
_WITHOUT_EFFECT: Final = (
    "groupIdPrefix",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "kafkaConsumer.pollTimeoutMs",
)
# Settings of Java's consumer that would change what is read or how the broker is reached.
_KAFKA_REFUSED: Final = re.compile(
    r"kafka\.(auto\.offset\.reset|(key|value)\.deserializer|enable\.auto\.commit"
    r"|interceptor\.classes|security\..*|sasl\..*|ssl\..*)"
)
_SPELLING: Final = {name.lower(): name for name in (*_KNOWN, *_KAFKA_KNOWN, *_WITHOUT_EFFECT)}


def read_options(options: Mapping[str, str], *, streaming: bool | None = None) -> SourceOptions:
    """The options as a value; `streaming` is None where it is not known yet which it will be.

    Raises `ConfigError`, which says what to do.
    """
    given = {key.lower(): value for key, value in options.items()}
    _refuse_unknown(given)
    get = _Reader(given)
    default_start = "latest" if streaming else "earliest"
    level = _level(given)
    chosen = SourceOptions(
        bootstrap=_bootstrap(given),
        selection=_selection(given),
        starting=_place("startingOffsets", given.get("startingoffsets", default_start)),
        ending=_place("endingOffsets", given.get("endingoffsets", "latest")),
        include_headers=get.boolean("includeHeaders", default=False),
        fail_on_data_loss=get.boolean("failOnDataLoss", default=True),
        min_partitions=get.count("minPartitions", default=0),
        max_offsets_per_trigger=get.count("maxOffsetsPerTrigger", default=0) or None,
        batch_bytes=get.count("batchBytes", default=1 << 20),
        offset_cache_ms=get.count("offsetCacheMs", default=100),
        isolation=_isolation(given),
        level=level,
        client=ClientSettings(
            rack=level.rack_to_name(given.get("kafka.client.rack")) or None,
            client_id=given.get("kafka.client.id", "tidemark-spark"),
            request_timeout_seconds=get.count("kafka.request.timeout.ms", default=30_000) / 1000,
        ),
    )
    if streaming is not None:
        _check_places(chosen, given, streaming=streaming)
    return chosen


def _refuse_unknown(given: Mapping[str, str]) -> None:
    for key in given:
        if _KAFKA_REFUSED.fullmatch(key):
            raise ConfigError(f"the option {key} is not supported by the source tidemark")
        if key in _SPELLING:
            if _SPELLING[key] in _WITHOUT_EFFECT:
                log.info("the option %s has no effect with the source tidemark", key)
        elif key.startswith("kafka."):
            log.warning("the option %s is one of Java's consumer and has no effect", key)
        else:
            close = difflib.get_close_matches(key, _SPELLING, n=1)
            hint = f"; did you mean {_SPELLING[close[0]]}?" if close else ""
            raise ConfigError(f"the source tidemark has no option {key}{hint}")


def _bootstrap(given: Mapping[str, str]) -> str:
    both = {given[key] for key in ("bootstrap", "kafka.bootstrap.servers") if key in given}
    if not both:
        raise ConfigError("no broker: set the option kafka.bootstrap.servers to host:port")
    if len(both) > 1:
        raise ConfigError("the options bootstrap and kafka.bootstrap.servers differ")
    return both.pop()


def _selection(given: Mapping[str, str]) -> Selection:
    chosen = [name for name in _SELECTIONS if name.lower() in given]
    if len(chosen) != 1:
        raise ConfigError(
            f"set exactly one of the options {', '.join(_SELECTIONS)}"
            f" ({' and '.join(chosen) or 'none'} is set)"
        )
    name, value = chosen[0], given[chosen[0].lower()]
    match name:
        case "subscribe":
            topics = tuple(sorted({topic.strip() for topic in value.split(",") if topic.strip()}))
            if not topics:
                raise ConfigError("the option subscribe names no topic")
            return Subscribe(topics)
        case "subscribePattern":
            try:
                re.compile(value)
            except re.error as error:
                raise ConfigError(f"the option subscribePattern: {error}") from error
            return SubscribePattern(value)
        case _:
            return Assign(_assigned(value))


def _assigned(text: str) -> tuple[TopicPartition, ...]:
    example = 'the option assign is JSON like {"topic": [0, 1]}'
    topics = _json(text, example)
    found = set()
    for topic, partitions in topics.items():
        if not isinstance(partitions, list) or not all(_is_count(p) for p in partitions):
            raise ConfigError(f"{example}, not {text}")
        found |= {TopicPartition(topic, partition) for partition in partitions}
    if not found:
        raise ConfigError("the option assign names no partition")
    return tuple(sorted(found))


def _place(name: str, text: str) -> Place:
    match text.strip().lower():
        case "earliest":
            return "earliest"
        case "latest":
            return "latest"
    example = (
        f'the option {name} is earliest, latest or JSON like {{"topic": {{"0": 23, "1": -1}}}}'
    )
    place: dict[TopicPartition, int] = {}
    for topic, partitions in _json(text, example).items():
        if not isinstance(partitions, dict):
            raise ConfigError(f"{example}, not {text}")
        for partition, offset in partitions.items():
            is_offset = _is_count(offset) or offset in (EARLIEST, LATEST)
            if not (partition.isascii() and partition.isdigit() and is_offset):
                raise ConfigError(f"{example}, not {text}")
            place[TopicPartition(topic, int(partition))] = offset
    return place


def _check_places(chosen: SourceOptions, given: Mapping[str, str], *, streaming: bool) -> None:
    """Refuse what has no meaning: a batch that starts at the end, a stream that has one."""
    if streaming:
        if "endingoffsets" in given:
            raise ConfigError("the option endingOffsets is for batches; a stream has no end")
        return
    if chosen.starting == "latest" or LATEST in _offsets(chosen.starting):
        raise ConfigError("the option startingOffsets of a batch cannot be latest (-1)")
    if chosen.ending == "earliest" or EARLIEST in _offsets(chosen.ending):
        raise ConfigError("the option endingOffsets cannot be earliest (-2)")


def _offsets(place: Place) -> tuple[int, ...]:
    return () if isinstance(place, str) else tuple(place.values())


def _isolation(given: Mapping[str, str]) -> Isolation:
    name = given.get("kafka.isolation.level", "read_uncommitted")
    try:
        return Isolation[name.upper()]
    except KeyError:
        raise ConfigError(
            f"the option kafka.isolation.level is read_uncommitted or read_committed, not {name}"
        ) from None


def _level(given: Mapping[str, str]) -> ReadLevel:
    try:
        return read_level(given.get("readlevel"), given.get("kafka.client.rack"))
    except ValueError:
        raise ConfigError(
            f"the option readLevel is {', '.join(ReadLevel)}, not {given['readlevel']}"
        ) from None


def _json(text: str, example: str) -> dict[str, object]:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise ConfigError(f"{example}, not {text}")
    return value


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


@dataclass(frozen=True, slots=True)
class _Reader:
    given: Mapping[str, str]

    def boolean(self, name: str, *, default: bool) -> bool:
        text = self.given.get(name.lower(), str(default)).lower()
        if text not in ("true", "false"):
            raise ConfigError(f"the option {name} is true or false, not {text}")
        return text == "true"

    def count(self, name: str, *, default: int) -> int:
        text = self.given.get(name.lower())
        if text is None:
            return default
        if not (text.isascii() and text.isdigit() and int(text) > 0):
            raise ConfigError(f"the option {name} is a whole number above 0, not {text}")
        return int(text)
