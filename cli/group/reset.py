"""Move the offsets of groups."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import click

from tidemark.cli.arguments import TARGET, Name
from tidemark.cli.confirm import confirm, dry_run_option, yes_option
from tidemark.cli.group.choices import Choice, parse_choice
from tidemark.cli.lookup import Extent, extents, extents_of_existing, partitions_of, resolve
from tidemark.cli.output import Column, Form, Json, notice, output_option, print_rows
from tidemark.cli.places import Shift
from tidemark.cli.session import Session, talks_to_brokers
from tidemark.client import Client, Start, TopicPartition
from tidemark.protocol.errors import ErrorCode, RequestError, TidemarkError
from tidemark.protocol.types import Offset


@click.command()
@click.argument("name", type=Name(), metavar="GROUP")
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
    type=Name(),
    multiple=True,
    metavar="TOPIC[:PARTITIONS]",
    help="Only this topic's partitions, or only those that are named (orders:0,3-5); repeatable. "
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

    Shows where it is and where it will be, and asks; a group with members is refused.
    A place outside of a log stands for its nearest end.
    A time is @MILLISECONDS since 1970, @-1h30m (so long ago), or ISO 8601.
    """
    chosen = [parse_choice(topic) for topic in topics]
    members = session.run(lambda client: _members(client, name))
    if members and not dry_run:
        raise TidemarkError(
            f"group {name} has {members} member{'s' if members > 1 else ''}, who would go on from "
            "where they are: stop them first, or say --dry-run to look only"
        )
    moves = session.run(lambda client: _plan_reset(client, name, chosen, target))
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


async def _members(client: Client, name: str) -> int:
    """How many members the group has; a group that is not there yet has none."""
    try:
        return len((await client.admin.describe_group(name)).members)
    except RequestError as error:
        if error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Move:
    """One partition's offset, before and after; `before` is None where there is no commit."""

    before: Offset | None
    after: Offset
    end: Offset


async def _plan_reset(
    client: Client, name: str, chosen: Sequence[Choice], target: Start | Shift
) -> dict[TopicPartition, _Move]:
    committed = await client.admin.list_group_offsets(name)
    if chosen:
        described = await client.admin.describe_topics([choice.topic for choice in chosen])
        there = {topic.name: partitions_of(topic) for topic in described}
        logs = await extents(
            client.admin, [at for choice in chosen for at in choice.among(there[choice.topic])]
        )
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
