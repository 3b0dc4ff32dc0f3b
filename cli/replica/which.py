"""Which partitions are meant."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tidemark.cli.arguments import Name
from tidemark.cli.numbers import Whole
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.types import TopicPartition

if TYPE_CHECKING:
    from tidemark.client import Client

topic_argument = click.argument("topic", type=Name())
partition_argument = click.argument("partition", type=Whole(0), required=False)


async def partitions_meant(
    client: Client, topic: str, partition: int | None
) -> list[TopicPartition]:
    """All of the topic, unless one is named. Raises `RequestError` for one that is not there."""
    (found,) = await client.admin.describe_topics([topic])
    known = [TopicPartition(topic, each.partition) for each in found.partitions]
    if partition is None:
        return known
    asked = TopicPartition(topic, partition)
    if asked not in known:
        raise RequestError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {asked}")
    return [asked]
