"""Where in each partition to begin and to end: what the options say, before anybody is asked.

Three options say it, and as in Spark's Kafka source the first of them that is set counts:
`startingTimestamp`, `startingOffsetsByTimestamp`, `startingOffsets`; the same for `ending`.
"""

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from tidemark.client.spark.values import Options, is_count, refuse
from tidemark.protocol.errors import ConfigError
from tidemark.protocol.types import TopicPartition
from tidemark.protocol.values import dataclass

EARLIEST: Final = -2
LATEST: Final = -1

Side: TypeAlias = Literal["starting", "ending"]


@dataclass(frozen=True, slots=True)
class AtTimes:
    """The first record of that time (milliseconds) or later: one time, or each partition's."""

    times: int | Mapping[TopicPartition, int]
    is_latest_if_none: bool
    """What a partition without so late a record means: its end, or an error."""


Place: TypeAlias = Literal["earliest", "latest"] | Mapping[TopicPartition, int] | AtTimes
"""Where in each partition; in the mapping, `EARLIEST` and `LATEST` stand for the log's ends."""


def place_options(side: Side) -> tuple[str, str, str]:
    """The names of the options, the one that counts most first."""
    return f"{side}Timestamp", f"{side}OffsetsByTimestamp", f"{side}Offsets"


def read_place(options: Options, side: Side, *, default: Literal["earliest", "latest"]) -> Place:
    """What the three options say together."""
    time, times, offsets = place_options(side)
    # An end that no record has reached yet is simply the end.
    is_latest_if_none = side == "ending" or _is_latest_if_none(options)
    if time in options:
        text = options.text(time) or ""
        if not (text.isascii() and text.isdigit()):
            refuse(time, "a time in milliseconds since 1970", text)
        return AtTimes(int(text), is_latest_if_none)
    if times in options:
        return AtTimes(_by_partition(options, times, least=0), is_latest_if_none)
    match (options.text(offsets) or default).strip().lower():
        case "earliest":
            return "earliest"
        case "latest":
            return "latest"
        case _:
            return _by_partition(options, offsets, least=EARLIEST)


def _is_latest_if_none(options: Options) -> bool:
    name = "startingOffsetsByTimestampStrategy"
    strategy = (options.text(name) or "error").lower()
    if strategy not in ("error", "latest"):
        refuse(name, "error or latest", strategy)
    return strategy == "latest"


def _by_partition(options: Options, name: str, *, least: int) -> dict[TopicPartition, int]:
    text = options.text(name) or ""
    example = '{"topic": {"0": 23, "1": 42}}'
    what = f"JSON like {example}"
    if least < 0:
        what = f"earliest, latest or {what}, where -2 is earliest and -1 is latest"
    try:
        topics = options.json(name, example)
    except ConfigError:
        refuse(name, what, text)
    place: dict[TopicPartition, int] = {}
    for topic, partitions in topics.items():
        if not isinstance(partitions, dict):
            refuse(name, what, text)
        for partition, value in partitions.items():
            is_value = is_count(value) or (least < 0 and value in (EARLIEST, LATEST))
            if not (partition.isascii() and partition.isdigit() and is_value):
                refuse(name, what, text)
            place[TopicPartition(topic, int(partition))] = value
    return place


def check_places(options: Options, starting: Place, ending: Place, *, streaming: bool) -> None:
    """Refuse what has no meaning: a batch that starts at the end, a stream that has one."""
    if streaming:
        for name in place_options("ending"):
            if name in options:
                raise ConfigError(f"the option {name} is for batches; a stream has no end")
        return
    if starting == "latest" or LATEST in _offsets(starting):
        raise ConfigError("the option startingOffsets of a batch cannot be latest (-1)")
    if ending == "earliest" or EARLIEST in _offsets(ending):
        raise ConfigError("the option endingOffsets cannot be earliest (-2)")


def _offsets(place: Place) -> tuple[int, ...]:
    return tuple(place.values()) if isinstance(place, Mapping) else ()
