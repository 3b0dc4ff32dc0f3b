"""Delete the records before a place in a topic's partitions."""

from collections.abc import Sequence

import click

from tidemark.cli.arguments import START, Name
from tidemark.cli.confirm import confirm, dry_run_option, yes_option
from tidemark.cli.lookup import Extent, extents, partitions_of, resolve
from tidemark.cli.numbers import Whole
from tidemark.cli.output import Column, Form, Json, notice, output_option, print_rows
from tidemark.cli.session import Session, talks_to_brokers
from tidemark.client import Client, Start, TopicPartition
from tidemark.protocol.errors import TidemarkError
from tidemark.protocol.types import Offset


@click.command()
@click.argument("name", type=Name(), metavar="TOPIC")
@click.option(
    "--before",
    type=START,
    required=True,
    metavar="PLACE",
    help="end, an offset, -N (keep the last N), or a time.",
)
@click.option(
    "-p",
    "--partition",
    "chosen",
    type=Whole(0),
    multiple=True,
    help="Only this one; repeatable.",
)
@dry_run_option
@yes_option
@output_option
@talks_to_brokers
@click.pass_obj
def trim(
    session: Session,
    name: str,
    before: Start,
    chosen: tuple[int, ...],
    dry_run: bool,
    yes: bool,
    form: Form,
) -> None:
    """Delete a topic's records before a place in its partitions.

    A time is @MILLISECONDS since 1970, @-1h30m (so long ago), or ISO 8601.
    """
    logs, ends = session.run(lambda client: _plan_trim(client, name, chosen, before))
    rows: list[dict[str, Json]] = [
        {
            "partition": at.partition,
            "start": logs[at].start,
            "new_start": ends[at],
            "high_watermark": logs[at].end,
            "records": ends[at] - logs[at].start,
        }
        for at in ends
    ]
    print_rows(rows, [Column(key) for key in rows[0]], form)
    if confirm("Delete these records?", yes=yes, dry_run=dry_run):
        session.run(lambda client: client.admin.delete_records(ends))
        notice(f"trimmed {name}")


async def _plan_trim(
    client: Client, name: str, chosen: Sequence[int], place: Start
) -> tuple[dict[TopicPartition, Extent], dict[TopicPartition, Offset]]:
    there = partitions_of(await client.admin.describe_topic(name))
    partitions = [at for at in there if not chosen or at.partition in chosen]
    if missing := set(chosen) - {at.partition for at in partitions}:
        raise TidemarkError(f"{name} has no partition {', '.join(map(str, sorted(missing)))}")
    logs = await extents(client.admin, partitions)
    return logs, await resolve(client.admin, place, logs)
