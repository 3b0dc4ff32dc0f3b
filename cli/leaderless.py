"""Who reads or writes a partition that nobody leads is told so: nothing happens until somebody
does, and that may be for ever."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import click

from tidemark.protocol.errors import TidemarkError
from tidemark.protocol.types import TopicPartition

if TYPE_CHECKING:
    from tidemark.client import Client

_LOOK_SECONDS: Final = 3.0
"""An election is over sooner, so only what has no leader in two looks is told."""


async def tell_of_leaderless(client: Client, what: Collection[str | TopicPartition]) -> None:
    """Look now and then at these topics or partitions, until cancelled; each partition is told
    once, on standard error."""
    import trio

    topics = sorted({each if isinstance(each, str) else each.topic for each in what})
    seen: set[TopicPartition] = set()
    told: set[TopicPartition] = set()
    while True:
        await trio.sleep(_LOOK_SECONDS)
        found: dict[TopicPartition, str] = {}
        with suppress(TidemarkError, OSError):  # The command hears of it, too, and says so.
            for topic in await client.admin.describe_topics(topics):
                for each in topic.partitions:
                    at = TopicPartition(topic.name, each.partition)
                    if each.leader is None and (topic.name in what or at in what):
                        found[at] = ", ".join(map(str, each.replicas))
        for at in sorted(seen & found.keys() - told):
            click.echo(
                f"tidemark: {at} has no leader, and is waited for; its replicas: {found[at]}",
                err=True,
            )
            told.add(at)
        seen = set(found)
