"""Who writes to a partition that takes no records is told so, and why: the records are sent again
and again, until there is room on a broker's disk, say, and nothing else would be heard of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from tidemark.protocol.types import TopicPartition

if TYPE_CHECKING:
    from tidemark.client import Producer

_LOOK_SECONDS: Final = 2.0
"""What passes by itself is over sooner, so only what is refused in two looks is told."""


async def tell_of_refused(producer: Producer) -> None:
    """Look now and then, until cancelled; what a partition answers is told once, on standard
    error, and again once it answers something else."""
    import trio

    seen: dict[TopicPartition, str] = {}
    told: dict[TopicPartition, str] = {}
    while True:
        await trio.sleep(_LOOK_SECONDS)
        found = producer.refusals()
        for at, answer in sorted(found.items()):
            if at in seen and told.get(at) != answer:
                click.echo(
                    f"tidemark: {at} takes no records, and is asked again: {answer}", err=True
                )
                told[at] = answer
        seen = found
