"""Ranges of offsets: from what was asked for to what each task reads. Pure."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

from pyspark.sql.datasource import InputPartition

from tidemark.client.spark.options import EARLIEST, LATEST, Place
from tidemark.protocol.errors import ConfigError
from tidemark.protocol.types import TopicPartition

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


def resolve(
    place: Place,
    partitions: Collection[TopicPartition],
    beginnings: Offsets,
    ends: Offsets,
    *,
    option: str,
) -> dict[TopicPartition, int]:
    """The offset of each partition that `place` means.

    Raises `ConfigError` if it names other partitions than there are: all, or none.
    """
    if place == "earliest":
        return {tp: beginnings[tp] for tp in partitions}
    if place == "latest":
        return {tp: ends[tp] for tp in partitions}
    if place.keys() != set(partitions):
        missing = ", ".join(map(str, sorted(set(partitions) - place.keys())))
        unknown = ", ".join(map(str, sorted(place.keys() - set(partitions))))
        raise ConfigError(
            f"the option {option} names every partition that is read, and no other;"
            f" missing: {missing or 'none'}, unknown: {unknown or 'none'}"
        )
    ends_of_log = {EARLIEST: beginnings, LATEST: ends}
    return {
        tp: ends_of_log[offset][tp] if offset in ends_of_log else offset
        for tp, offset in place.items()
    }


def split(ranges: Iterable[OffsetRange], at_least: int) -> list[OffsetRange]:
    """The ranges that are not empty; long ones in pieces, so that there are `at_least` so many."""
    whole = [one for one in ranges if one.size > 0]
    total = sum(one.size for one in whole)
    if len(whole) >= at_least:
        return whole
    pieces: list[OffsetRange] = []
    for one in whole:
        parts = min(one.size, max(1, -(-one.size * at_least // total)))
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
