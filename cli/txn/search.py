"""Where what hangs can be looked for: whoever leads a partition knows what is open in it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import click

from tidemark.client import TopicDescription, TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Partitions that can be searched, and those that cannot be: they would be waited for, and what
    hangs elsewhere not be told."""

    led: Sequence[TopicPartition]
    leaderless: Sequence[TopicPartition]


def places_in(topics: Iterable[TopicDescription], partition: int | None = None) -> Places:
    """All partitions of these topics, or those of this number alone."""
    led: list[TopicPartition] = []
    leaderless: list[TopicPartition] = []
    for topic in topics:
        for each in topic.partitions:
            if partition in (None, each.partition):
                known = leaderless if each.leader is None else led
                known.append(TopicPartition(topic.name, each.partition))
    return Places(led=led, leaderless=leaderless)


def warn_of(leaderless: Sequence[TopicPartition]) -> None:
    """Say that these, if there are any, were not searched."""
    if leaderless:
        more = f" and {len(leaderless) - 1} more" if leaderless[1:] else ""
        what = f"without a leader, {leaderless[0]}{more} cannot be searched for what hangs"
        click.echo(f"tidemark: {what}", err=True)
