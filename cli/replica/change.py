"""Move, add and remove replicas, and call moves off."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import click

from tidemark.cli.confirm import dry_run_option
from tidemark.cli.each import do_each
from tidemark.cli.numbers import Whole
from tidemark.cli.output import Column, Form, Json, notice, output_option, print_rows
from tidemark.cli.replica.progress import (
    REPLICA_COLUMNS,
    STATUS_COLUMNS,
    follow,
    follow_observers,
    look,
    move_rows,
    replica_rows,
)
from tidemark.cli.replica.which import partition_argument, partitions_meant, topic_argument
from tidemark.cli.session import Session, talks_to_brokers
from tidemark.cli.waiting import timeout_option, wait_option
from tidemark.protocol.types import TopicPartition

if TYPE_CHECKING:
    from tidemark.client import Client
    from tidemark.client.replica_changes import Change
    from tidemark.client.replica_descriptions import ReplicaChange

_CHANGE_COLUMNS: Final = (
    Column("topic"),
    Column("partition"),
    Column("before"),
    Column("after"),
)


def brokers_option(what: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """`--broker N`, which may be repeated."""
    return click.option(
        "--broker",
        "brokers",
        type=Whole(0),
        multiple=True,
        required=True,
        metavar="BROKER",
        help=what,
    )


@click.command()
@topic_argument
@click.argument("partition", type=Whole(0))
@click.option("--from", "source", type=Whole(0), required=True, help="The broker that holds it.")
@click.option("--to", type=Whole(0), required=True, help="The broker that is to hold it instead.")
@dry_run_option
@wait_option
@timeout_option
@output_option
@talks_to_brokers
@click.pass_obj
def move(
    session: Session,
    topic: str,
    partition: int,
    source: int,
    to: int,
    dry_run: bool,
    wait: bool,
    timeout_seconds: float,
    form: Form,
) -> None:
    """Move a replica of a partition from broker --from to broker --to.

    If --from leads it, the lead goes to another replica first; no client sees an error.
    """
    from tidemark.client.replica_changes import moved

    _change(session, topic, partition, moved(source, to), dry_run, wait, timeout_seconds, form)


@click.command()
@topic_argument
@partition_argument
@brokers_option("A broker to add a replica on; repeatable.")
@click.option(
    "--observer", is_flag=True, help="Add an observer: a copy to read from, without a vote."
)
@dry_run_option
@wait_option
@timeout_option
@output_option
@talks_to_brokers
@click.pass_obj
def add(
    session: Session,
    topic: str,
    partition: int | None,
    brokers: tuple[int, ...],
    observer: bool,
    dry_run: bool,
    wait: bool,
    timeout_seconds: float,
    form: Form,
) -> None:
    """Add replicas of a partition, or of all of a topic's.

    With --observer, --wait ends when they hold all that was committed when it began.
    """
    if observer:
        _observe(session, topic, partition, brokers, (), dry_run, wait, timeout_seconds, form)
        return
    from tidemark.client.replica_changes import added

    _change(session, topic, partition, added(brokers), dry_run, wait, timeout_seconds, form)


@click.command()
@topic_argument
@partition_argument
@brokers_option("A broker to remove the replica from; repeatable.")
@click.option("--observer", is_flag=True, help="Remove an observer, which has no vote.")
@dry_run_option
@wait_option
@timeout_option
@output_option
@talks_to_brokers
@click.pass_obj
def remove(
    session: Session,
    topic: str,
    partition: int | None,
    brokers: tuple[int, ...],
    observer: bool,
    dry_run: bool,
    wait: bool,
    timeout_seconds: float,
    form: Form,
) -> None:
    """Remove replicas of a partition, or of all of a topic's. The last one always stays."""
    if observer:
        _observe(session, topic, partition, (), brokers, dry_run, wait, timeout_seconds, form)
        return
    from tidemark.client.replica_changes import removed

    _change(session, topic, partition, removed(brokers), dry_run, wait, timeout_seconds, form)


@click.command()
@topic_argument
@partition_argument
@wait_option
@timeout_option
@output_option
@talks_to_brokers
@click.pass_obj
def cancel(
    session: Session,
    topic: str,
    partition: int | None,
    wait: bool,
    timeout_seconds: float,
    form: Form,
) -> None:
    """Call off the moves of a partition's replicas, or of all of a topic's.

    The brokers that held them before hold them again.
    """

    async def run(client: Client) -> None:
        asked = await partitions_meant(client, topic, partition)
        if partition is None:
            asked = list(await client.admin.list_reassignments(asked))
        if asked:
            await client.admin.cancel_reassignments(asked)
            notice(f"the replicas of {', '.join(map(str, asked))} go back")
        else:
            notice(f"no replicas of {topic} are being moved")
        if wait:
            await follow(client, asked, timeout_seconds)
        print_rows(move_rows(await look(client, asked)), STATUS_COLUMNS, form)

    session.run(run)


def _change(
    session: Session,
    topic: str,
    partition: int | None,
    change: Change,
    dry_run: bool,
    wait: bool,
    timeout_seconds: float,
    form: Form,
) -> None:
    async def run(client: Client) -> None:
        asked = await partitions_meant(client, topic, partition)
        changes = await client.admin.change_replicas(asked, change, dry_run=dry_run)
        if wait and not dry_run:
            await follow(client, asked, timeout_seconds)
        print_rows(_change_rows(changes), _CHANGE_COLUMNS, form)
        if not dry_run and not wait:
            notice(f"it goes on by itself: see `tidemark replica status {topic}`")

    session.run(run)


def _observe(
    session: Session,
    topic: str,
    partition: int | None,
    added: Sequence[int],
    removed: Sequence[int],
    dry_run: bool,
    wait: bool,
    timeout_seconds: float,
    form: Form,
) -> None:
    if dry_run:
        raise click.UsageError("--dry-run is for replicas with a vote: see `tidemark replica list`")

    async def run(client: Client) -> None:
        async def change(at: TopicPartition) -> str:
            observers = await client.admin.change_observers(at, add=added, remove=removed)
            return f"{at} is observed by {', '.join(map(str, observers)) or 'nobody'}"

        asked = await partitions_meant(client, topic, partition)
        await do_each(asked, change)
        if wait:
            await follow_observers(client, asked, added, timeout_seconds)
        described = await client.admin.describe_replicas(asked)
        print_rows(replica_rows(described), REPLICA_COLUMNS, form)

    session.run(run)


def _change_rows(changes: Mapping[TopicPartition, ReplicaChange]) -> list[dict[str, Json]]:
    return [
        {
            "topic": at.topic,
            "partition": at.partition,
            "before": list(each.before),
            "after": list(each.after),
        }
        for at, each in changes.items()
    ]
