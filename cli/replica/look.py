"""Who holds partitions, and how far moves of replicas are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tidemark.cli.arguments import Name
from tidemark.cli.output import Form, output_option, print_rows
from tidemark.cli.replica.progress import (
    REPLICA_COLUMNS,
    STATUS_COLUMNS,
    look,
    move_rows,
    replica_rows,
)
from tidemark.cli.replica.which import partition_argument, partitions_meant, topic_argument
from tidemark.cli.session import Session, talks_to_brokers

if TYPE_CHECKING:
    from tidemark.client import Client


@click.command()
@click.argument("topic", type=Name(), required=False)
@partition_argument
@output_option
@talks_to_brokers
@click.pass_obj
def status(session: Session, topic: str | None, partition: int | None, form: Form) -> None:
    """Show the moves of replicas that are under way, and how far they are.

    Of all partitions, of a topic's, or of one.
    """

    async def run(client: Client) -> None:
        asked = None if topic is None else await partitions_meant(client, topic, partition)
        print_rows(move_rows(await look(client, asked)), STATUS_COLUMNS, form)

    session.run(run)


@click.command("list")
@topic_argument
@partition_argument
@output_option
@talks_to_brokers
@click.pass_obj
def list_(session: Session, topic: str, partition: int | None, form: Form) -> None:
    """List who holds a topic's partitions, and how far each replica is.

    LAG is in records that are committed. An observer's STALE-MS is for how long, in
    milliseconds, it may have been missing something.
    """

    async def run(client: Client) -> None:
        asked = await partitions_meant(client, topic, partition)
        described = await client.admin.describe_replicas(asked)
        print_rows(replica_rows(described), REPLICA_COLUMNS, form)

    session.run(run)
