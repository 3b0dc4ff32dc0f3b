"""List topics."""

from collections.abc import Mapping, Sequence

import click

from tidemark.cli.observers import observers_of
from tidemark.cli.output import Column, Form, Json, output_option, print_rows
from tidemark.cli.session import Session, talks_to_brokers
from tidemark.client import Client, TopicDescription, TopicPartition


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
    """The topics, and how many observers there are of the first partition of each that has some."""
    topics = await client.admin.list_topics(internal=internal)
    firsts = {
        TopicPartition(topic.name, first.partition): first
        for topic in topics
        for first in topic.partitions[:1]
    }
    observers = await observers_of(client, firsts)
    return topics, {at.topic: len(each) for at, each in observers.items()}


def topic_id(topic: TopicDescription) -> str | None:
    """None for brokers that have no topic ids."""
    return str(topic.topic_id) if topic.topic_id.int else None
