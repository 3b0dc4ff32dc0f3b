"""List topics."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

import click
import trio

from tidemark.cli.output import Column, Form, Json, output_option, print_rows
from tidemark.cli.session import Session, talks_to_brokers
from tidemark.client import Client, RequestError, TopicDescription, TopicPartition

_PATIENCE_SECONDS: Final = 5.0


@click.command("list")
@click.option("-i", "--internal", is_flag=True, help="Include the cluster's internal topics.")
@output_option
@talks_to_brokers
@click.pass_obj
def list_(session: Session, internal: bool, form: Form) -> None:
    """List topics.

    Observers do not count as replicas.
    """
    topics, observers = session.run(lambda client: _list(client, internal=internal))
    rows: list[dict[str, Json]] = [
        {
            "name": topic.name,
            "partitions": len(topic.partitions),
            "replicas": topic.replication_factor - observers.get(topic.name, 0),
            "internal": topic.is_internal,
            "topic_id": topic_id(topic),
        }
        for topic in topics
    ]
    columns = [
        Column("name"),
        Column("partitions"),
        Column("replicas"),
        Column("internal", wide=True),
        Column("topic_id", wide=True),
    ]
    print_rows(rows, columns, form)


async def _list(
    client: Client, *, internal: bool
) -> tuple[Sequence[TopicDescription], Mapping[str, int]]:
    """The topics, and how many observers there are of the first partition of each that has some.

    Metadata count observers among the replicas, and never among those in sync: of most topics there
    is nothing to be asked.
    """
    topics = await client.admin.list_topics(internal=internal)
    asked = [
        TopicPartition(topic.name, first.partition)
        for topic in topics
        for first in topic.partitions[:1]
        if first.leader is not None and len(first.in_sync) < len(first.replicas)
    ]
    with trio.move_on_after(_PATIENCE_SECONDS), suppress(OSError, RequestError):
        found = await client.admin.describe_replicas(asked)
        return topics, {at.topic: len(each.observers) for at, each in found.items()}
    return topics, {}


def topic_id(topic: TopicDescription) -> str | None:
    """None for brokers that have no topic ids."""
    return str(topic.topic_id) if topic.topic_id.int else None
