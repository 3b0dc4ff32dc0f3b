"""Delete groups, and move their offsets."""

from collections.abc import Mapping
from dataclasses import dataclass

import click

from tidemark.cli.arguments import TARGET
from tidemark.cli.confirm import confirm, dry_run_option, yes_option
from tidemark.cli.lookup import Extent, extents, extents_of_existing, partitions_of, resolve
from tidemark.cli.output import Column, Form, Json, notice, output_option, print_rows
from tidemark.cli.places import Shift
from tidemark.cli.session import Session, talks_to_brokers
from tidemark.client import Client, Start, TopicPartition
from tidemark.protocol.errors import TidemarkError
from tidemark.protocol.types import Offset


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="GROUP…")
@talks_to_brokers
@click.pass_obj
def delete(session: Session, names: tuple[str, ...]) -> None:
    """Delete groups that have no members, with their commits."""

    async def delete_all(client: Client) -> None:
        for name in names:
            await client.admin.delete_group(name)
            notice(f"deleted {name}")

    session.run(delete_all)


@click.command()
@click.argument("name", metavar="GROUP")
@click.option(
    "--to",
    "target",
    type=TARGET,
    required=True,
    metavar="PLACE",
    help="beginning, end, an offset, +N or -N from where it is, or a time.",
)
@click.option(
    "--topic",
    "topics",
    multiple=True,
    help="Only this topic's partitions; repeatable. "
    "Needed for a topic that the group has no commits for.",
)
@dry_run_option
@yes_option
@output_option
@talks_to_brokers
@click.pass_obj
def reset(
    session: Session,
    name: str,
    target: Start | Shift,
    topics: tuple[str, ...],
    dry_run: bool,
    yes: bool,
    form: Form,
) -> None:
    """Move the offsets of a group that has no members now.

    Shows where it is and where it will be, and asks. A place outside of a log is its nearest end.
    A time is @MILLISECONDS since 1970, @-1h30m (so long ago), or ISO 8601.
    """
    moves = session.run(lambda client: _plan_reset(client, name, topics, target))
    rows: list[dict[str, Json]] = [
        {
            "topic": at.topic,
            "partition": at.partition,
            "before": move.before,
            "after": move.after,
            "end": move.end,
            "lag": move.end - move.after,
        }
        for at, move in moves.items()
    ]
    columns = ["topic", "partition", "before", "after", "end", "lag"]
    print_rows(rows, [Column(key) for key in columns], form)
    if confirm("Move the offsets?", yes=yes, dry_run=dry_run):
        offsets = {at: move.after for at, move in moves.items()}
        session.run(lambda client: client.admin.alter_group_offsets(name, offsets))
        notice(f"moved {name}")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Move:
    """One partition's offset, before and after; `before` is None where there is no commit."""

    before: Offset | None
    after: Offset
    end: Offset


async def _plan_reset(
    client: Client, name: str, topics: tuple[str, ...], target: Start | Shift
) -> dict[TopicPartition, _Move]:
    committed = await client.admin.list_group_offsets(name)
    if topics:
        described = await client.admin.describe_topics(topics)
        logs = await extents(client.admin, [at for t in described for at in partitions_of(t)])
    else:
        logs = await extents_of_existing(client.admin, committed)
    if not logs:
        raise TidemarkError(f"group {name} has no offsets to move; name a topic with --topic")
    before = {at: committed[at].offset if at in committed else None for at in logs}
    after = (
        _shift(target, before, logs)
        if isinstance(target, Shift)
        else await resolve(client.admin, target, logs)
    )
    return {
        at: _Move(before=before[at], after=after[at], end=logs[at].end)
        for at in sorted(logs)
        if at in after
    }


def _shift(
    by: Shift, before: Mapping[TopicPartition, Offset | None], logs: Mapping[TopicPartition, Extent]
) -> dict[TopicPartition, Offset]:
    """Only where there is something to shift."""
    return {
        at: logs[at].clamp(offset + by.records)
        for at, offset in before.items()
        if offset is not None
    }
