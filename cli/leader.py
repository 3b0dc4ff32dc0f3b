"""`tidemark leader`: who leads what, and who is to."""

from collections.abc import Collection, Sequence
from typing import Final

import click

from tidemark.cli.arguments import Name
from tidemark.cli.leader_balance import balance
from tidemark.cli.numbers import SECONDS_MAX, Real, Whole
from tidemark.cli.observers import observers_of
from tidemark.cli.output import (
    Column,
    Form,
    Json,
    notice,
    output_option,
    print_rows,
)
from tidemark.cli.session import Session, talks_to_brokers
from tidemark.cli.verbs import Verbs
from tidemark.client import (
    Client,
    ElectedLeader,
    MovedLeader,
    PartitionDescription,
    RequestError,
    TopicPartition,
)
from tidemark.protocol.types import NodeId

NOT_ALL: Final = 1
"""The exit status where some leader has not moved."""

_MOVE_COLUMNS: Final = (
    Column("topic"),
    Column("partition"),
    Column("leader"),
    Column("outcome"),
    Column("catch_up_ms"),
    Column("held_ms"),
    Column("attempts"),
)
_LIST_COLUMNS: Final = (
    Column("topic"),
    Column("partition"),
    Column("leader"),
    Column("preferred"),
    Column("epoch", wide=True),
    Column("replicas"),
    Column("in_sync"),
    Column("observers"),
)
_ELECT_COLUMNS: Final = (Column("topic"), Column("partition"), Column("outcome"))


@click.group(cls=Verbs)
def leader() -> None:
    """See which brokers lead partitions, and move leaders."""


leader.add_command(balance)


@leader.command()
@click.argument("topic", type=Name())
@click.argument("partition", type=Whole(0))
@click.option("--to", "target", type=Whole(0), required=True, help="The broker that is to lead.")
@click.option("--reason", default="", help="Why, for the brokers' logs.")
@click.option(
    "--timeout",
    "timeout_seconds",
    type=Real(0.001, fits=SECONDS_MAX),
    default=30.0,
    show_default=True,
    help="Give up after this many seconds.",
)
@click.option("--dry-run", is_flag=True, help="Say only what would be refused, and move nothing.")
@output_option
@talks_to_brokers
@click.pass_obj
def move(
    session: Session,
    topic: str,
    partition: int,
    target: int,
    reason: str,
    timeout_seconds: float,
    dry_run: bool,
    form: Form,
) -> None:
    """Move a partition's leader to broker --to, which has a replica of it.

    Writes go on while it catches up, and are held for some tens of milliseconds while it takes
    over; no client sees an error. If it fails, the partition is led as before, and the exit
    status is 1.
    """
    moved = session.run(
        lambda client: client.admin.move_leader(
            topic,
            partition,
            to=target,
            timeout_seconds=timeout_seconds,
            reason=reason,
            dry_run=dry_run,
        )
    )
    print_rows([_move_row(moved, dry_run=dry_run)], _MOVE_COLUMNS, form)


def _move_row(moved: MovedLeader, *, dry_run: bool) -> dict[str, Json]:
    if dry_run:
        outcome = "leads already" if moved.leader == moved.target else "would move"
    else:
        outcome = "led already" if moved.was_needless else "moved"
    return {
        "topic": moved.partition.topic,
        "partition": moved.partition.partition,
        "leader": moved.leader,
        "target": moved.target,
        "outcome": outcome,
        "catch_up_ms": round(moved.catch_up_seconds * 1000, 1),
        "held_ms": round(moved.pause_seconds * 1000, 1),
        "attempts": moved.attempts,
    }


@leader.command("list")
@click.argument("topics", nargs=-1, type=Name(), metavar="[TOPIC]…")
@click.option("--broker", "broker", type=Whole(0), help="Only what this broker leads.")
@click.option(
    "--strayed", is_flag=True, help="Only partitions that their preferred leader does not lead."
)
@output_option
@talks_to_brokers
@click.pass_obj
def list_(
    session: Session, topics: Sequence[str], broker: int | None, strayed: bool, form: Form
) -> None:
    """List who leads each partition, and its preferred leader.

    OBSERVERS, where there are some, have a copy to be read from and no vote: they never lead, and
    do not count as replicas.
    """

    async def look(client: Client) -> list[dict[str, Json]]:
        if topics:
            found = await client.admin.describe_topics(topics)
        else:
            found = await client.admin.list_topics(internal=True)
        partitions = {
            TopicPartition(each.name, partition.partition): partition
            for each in found
            for partition in each.partitions
            if broker is None or partition.leader == broker
        }
        observers = await observers_of(client, partitions)
        return [
            _list_row(at, partition, observers.get(at, ())) for at, partition in partitions.items()
        ]

    rows = session.run(look)
    if strayed:
        rows = [row for row in rows if row["leader"] != row["preferred"]]
    has_observers = any(row["observers"] for row in rows)
    columns = [each for each in _LIST_COLUMNS if has_observers or each.key != "observers"]
    print_rows(rows, columns, form)


def _list_row(
    at: TopicPartition, partition: PartitionDescription, observers: Collection[NodeId]
) -> dict[str, Json]:
    voters = [node for node in partition.replicas if node not in observers]
    return {
        "topic": at.topic,
        "partition": at.partition,
        "leader": partition.leader,
        "preferred": voters[0] if voters else None,
        "epoch": partition.leader_epoch,
        "replicas": voters,
        "in_sync": list(partition.in_sync),
        "observers": list(observers),
    }


@leader.command()
@click.argument("topics", nargs=-1, type=Name(), metavar="[TOPIC]…")
@output_option
@talks_to_brokers
@click.pass_obj
@click.pass_context
def elect(ctx: click.Context, session: Session, topics: Sequence[str], form: Form) -> None:
    """Elect the preferred leaders of these topics, or of all.

    The preferred leader is the first of a partition's replicas. Works with any
    Kafka broker. The exit status is 1 if some leader stayed where it should not.
    """

    async def do(client: Client) -> Sequence[ElectedLeader]:
        partitions = None
        if topics:
            partitions = [
                TopicPartition(topic.name, each.partition)
                for topic in await client.admin.describe_topics(topics)
                for each in topic.partitions
            ]
        return await client.admin.elect_leaders(partitions)

    elected = session.run(do)
    rows: list[dict[str, Json]] = [
        {
            "topic": each.partition.topic,
            "partition": each.partition.partition,
            "outcome": _elected(each),
        }
        for each in sorted(elected, key=lambda each: each.partition)
    ]
    print_rows(rows, _ELECT_COLUMNS, form)
    if not rows:
        notice("All preferred leaders lead.")
    if any(each.error is not None and not each.was_needless for each in elected):
        ctx.exit(NOT_ALL)


def _elected(elected: ElectedLeader) -> str:
    if elected.error is None:
        return "moved"
    return "led already" if elected.was_needless else _sentence(elected.error)


def _sentence(error: RequestError) -> str:
    return error.message or error.code.name
