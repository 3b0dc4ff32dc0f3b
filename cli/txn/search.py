"""Where what hangs is looked for."""

from collections.abc import Iterable

import click

from tidemark.client import TopicDescription, TopicPartition


def led_partitions(
    topics: Iterable[TopicDescription], partition: int | None = None
) -> list[TopicPartition]:
    """Those that somebody leads, perhaps of this number alone; the others are warned of. They would
    be waited for, and what hangs elsewhere not be told."""
    led: list[TopicPartition] = []
    others: list[TopicPartition] = []
    for topic in topics:
        for each in topic.partitions:
            if partition in (None, each.partition):
                known = others if each.leader is None else led
                known.append(TopicPartition(topic.name, each.partition))
    if others:
        more = f" and {len(others) - 1} more" if others[1:] else ""
        what = f"tidemark: without a leader, {others[0]}{more} cannot be searched for what hangs"
        click.echo(what, err=True)
    return led
