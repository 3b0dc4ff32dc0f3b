"""Ranges of offsets: from what was asked for to what each task reads."""

from collections.abc import Collection, Iterable, Mapping
from itertools import pairwise
from typing import Protocol, TypeAlias

from pyspark.sql.datasource import InputPartition

from tidemark.client.spark.places import EARLIEST, LATEST, AtTimes, Place, Side, place_options
from tidemark.protocol.errors import ConfigError
from tidemark.protocol.types import TopicPartition
from tidemark.protocol.values import dataclass

Offsets: TypeAlias = Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class OffsetRange(InputPartition):
    """What one task reads: the offsets from `start` to `end` (exclusive) of one partition."""

    topic_partition: TopicPartition
    start: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.start


class Lookups(Protocol):
    """What a cluster knows of places in its logs."""

    def beginnings(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]: ...

    def ends(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]: ...

    def at_times(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        """The first offset of that time or later; None where no record is so late."""
        ...


def resolve(
    place: Place, partitions: Collection[TopicPartition], log: Lookups, side: Side
) -> dict[TopicPartition, int]:
    """The offset of each partition that `place` means; only what is needed is looked up.

    Raises `ConfigError` if it names other partitions than there are (all, or none), and for a time
    after the last record, where that is to be an error.
    """
    time, times, offsets = place_options(side)
    match place:
        case "earliest":
            return log.beginnings(partitions)
        case "latest":
            return log.ends(partitions)
        case AtTimes(int(moment)):
            return _at_times(place, dict.fromkeys(partitions, moment), log, time)
        case AtTimes(moments):
            assert not isinstance(moments, int)
            _require_all(moments, partitions, times)
            return _at_times(place, moments, log, times)
    _require_all(place, partitions, offsets)
    chosen = dict(place)
    for mark, look_up in ((EARLIEST, log.beginnings), (LATEST, log.ends)):
        if marked := [tp for tp, offset in place.items() if offset == mark]:
            chosen |= look_up(marked)
    return chosen


def _at_times(
    place: AtTimes, moments: Mapping[TopicPartition, int], log: Lookups, option: str
) -> dict[TopicPartition, int]:
    found = log.at_times(moments)
    without = [tp for tp, offset in found.items() if offset is None]
    if without and not place.is_latest_if_none:
        raise ConfigError(
            f"the option {option} is after the last record of {_listed(without)}; choose an earlier"
            " time, or set startingOffsetsByTimestampStrategy to latest to begin at the end there"
        )
    ends = log.ends(without) if without else {}
    return {tp: ends[tp] if offset is None else offset for tp, offset in found.items()}


def _require_all(
    named: Mapping[TopicPartition, int], partitions: Collection[TopicPartition], option: str
) -> None:
    if named.keys() != set(partitions):
        raise ConfigError(
            f"the option {option} names every partition that is read, and no other;"
            f" missing: {_listed(set(partitions) - named.keys())},"
            f" unknown: {_listed(named.keys() - set(partitions))}"
        )


def _listed(partitions: Iterable[TopicPartition]) -> str:
    return ", ".join(map(str, sorted(partitions))) or "none"


def split(
    ranges: Iterable[OffsetRange], at_least: int = 0, *, records_max: int | None = None
) -> list[OffsetRange]:
    """The ranges that are not empty; long ones in pieces, so that there are `at_least` so many,
    and none is longer than `records_max`."""
    whole = [one for one in ranges if one.size > 0]
    total = sum(one.size for one in whole)
    pieces: list[OffsetRange] = []
    for one in whole:
        parts = 1 if records_max is None else -(-one.size // records_max)
        if len(whole) < at_least:
            parts = max(parts, -(-one.size * at_least // total))
        parts = min(one.size, parts)
        bounds = [one.start + one.size * part // parts for part in range(parts + 1)]
        pieces += [OffsetRange(one.topic_partition, start, end) for start, end in pairwise(bounds)]
    return pieces


def limit_rows(starts: Offsets, ends: Offsets, rows_max: int) -> dict[TopicPartition, int]:
    """Ends so near that about `rows_max` offsets lie between, shared out by how many there are.

    A partition that has any gets at least one, so that small ones are not starved by large ones.
    """
    sizes = {tp: max(0, end - starts[tp]) for tp, end in ends.items()}
    total = sum(sizes.values())
    if total <= rows_max:
        return dict(ends)
    return {
        tp: starts[tp] + min(size, -(-size * rows_max // total)) if (size := sizes[tp]) else end
        for tp, end in ends.items()
    }
