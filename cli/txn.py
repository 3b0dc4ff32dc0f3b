"""`tidemark txn`: what transactions are open, and ending those that should not be."""

import time
from collections.abc import Iterable, Sequence
from typing import Final

import click

from tidemark.cli.arguments import Name
from tidemark.cli.confirm import confirm, dry_run_option, yes_option
from tidemark.cli.each import do_each
from tidemark.cli.numbers import Whole
from tidemark.cli.output import (
    Column,
    Form,
    Json,
    Section,
    notice,
    output_option,
    print_rows,
    print_sections,
)
from tidemark.cli.session import Session, talks_to_brokers
from tidemark.cli.verbs import Verbs
from tidemark.client import (
    Client,
    HangingTransaction,
    TopicDescription,
    TopicPartition,
    TransactionDescription,
    TransactionListing,
)
from tidemark.protocol.errors import TidemarkError

_HANGS: Final = "Hanging"
_STATES: Final = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "PrepareEpochFence",
    "Dead",
)
_ENDED: Final = frozenset({"Empty", "CompleteCommit", "CompleteAbort", "Dead"})
_COLUMNS: Final = (
    Column("transactional_id"),
    Column("state"),
    Column("producer_id"),
    Column("coordinator"),
    Column("open_for"),
    Column("partition"),
    Column("offset"),
    Column("silent_for"),
)


@click.group(cls=Verbs)
def txn() -> None:
    """List transactions, and end those that hang."""


@txn.command("list")
@click.option(
    "-s",
    "--state",
    "states",
    multiple=True,
    type=click.Choice([*_STATES, _HANGS], case_sensitive=False),
    metavar="STATE",
    help="Only those in this state; repeatable.",
)
@output_option
@talks_to_brokers
@click.pass_obj
def list_(session: Session, states: tuple[str, ...], form: Form) -> None:
    """List transactional ids, and transactions that hang.

    A transaction hangs if it is open in a partition and no coordinator is going to end it: readers
    of committed records stop there. `tidemark txn abort` ends it.
    """
    print_rows(session.run(lambda client: _look(client, states)), _COLUMNS, form)


async def _look(client: Client, states: tuple[str, ...]) -> list[dict[str, Json]]:
    known = [each for each in states if each != _HANGS]
    rows: list[dict[str, Json]] = []
    if known or not states:
        rows += await _listed_rows(client, known)
    if not states or _HANGS in states:
        topics = await client.admin.list_topics(internal=True)
        hanging = await client.admin.find_hanging_transactions(led_partitions(topics))
        rows += [_hanging_row(each) for each in hanging]
    return rows


async def _listed_rows(client: Client, states: Sequence[str]) -> list[dict[str, Json]]:
    listed = await client.admin.list_transactions(states=states)
    described = await client.admin.describe_transactions(
        each for each in listed if each.state not in _ENDED
    )
    return [_listed_row(each, described.get(each.transactional_id)) for each in listed]


def led_partitions(
    topics: Iterable[TopicDescription], partition: int | None = None
) -> list[TopicPartition]:
    """Those that somebody leads, perhaps of this number alone; the others are warned of. They would
    be waited for, and what hangs elsewhere not be told."""
    led: list[TopicPartition] = []
    others: list[TopicPartition] = []
    for topic in topics:
        for each in topic.partitions:
            if partition in (None, each.partition):
                known = others if each.leader is None else led
                known.append(TopicPartition(topic.name, each.partition))
    if others:
        more = f" and {len(others) - 1} more" if others[1:] else ""
        what = f"tidemark: without a leader, {others[0]}{more} cannot be searched for what hangs"
        click.echo(what, err=True)
    return led


def _listed_row(
    listed: TransactionListing, found: TransactionDescription | None
) -> dict[str, Json]:
    return {
        "transactional_id": listed.transactional_id,
        "state": listed.state,
        "producer_id": listed.producer_id,
        "coordinator": listed.coordinator,
        "open_for": None if found is None else _since(found.started_ms),
        "partition": None,
        "offset": None,
        "silent_for": None,
    }


def _described_row(found: TransactionDescription) -> dict[str, Json]:
    return _listed_row(
        TransactionListing(
            transactional_id=found.transactional_id,
            producer_id=found.producer_id,
            state=found.state,
            coordinator=found.coordinator.node_id,
        ),
        found,
    )


def _hanging_row(hanging: HangingTransaction) -> dict[str, Json]:
    return {
        "transactional_id": None,
        "state": _HANGS,
        "producer_id": hanging.producer_id,
        "coordinator": None,
        "open_for": None,
        "partition": str(hanging.partition),
        "offset": hanging.start,
        "silent_for": _since(hanging.last_timestamp_ms),
    }


def _since(timestamp_ms: int | None) -> str | None:
    if timestamp_ms is None:
        return None
    return f"{max(0, time.time() - timestamp_ms / 1000):.0f} s"


@txn.command()
@click.argument("transactional_id", type=Name(), metavar="ID")
@output_option
@talks_to_brokers
@click.pass_obj
def describe(session: Session, transactional_id: str, form: Form) -> None:
    """Show one transactional id, and what its transaction waits for."""
    found = session.run(lambda client: client.admin.describe_transaction(transactional_id))
    facts: dict[str, Json] = {
        "transactional_id": found.transactional_id,
        "state": found.state,
        "producer_id": found.producer_id,
        "epoch": found.epoch,
        "coordinator": found.coordinator.node_id,
        "timeout_ms": found.timeout_ms,
        "open_for": _since(found.started_ms),
    }
    rows = _partition_rows(found)
    print_sections(
        {**facts, "partitions": rows},
        {key.replace("_", "-"): value for key, value in facts.items()},
        [Section(title="partitions", rows=rows, columns=[Column("topic"), Column("partition")])],
        form,
    )


def _partition_rows(found: TransactionDescription) -> list[dict[str, Json]]:
    return [{"topic": each.topic, "partition": each.partition} for each in sorted(found.partitions)]


@txn.command()
@click.argument("transactional_id", type=Name(), metavar="[ID]", required=False)
@click.option("-t", "--topic", type=Name(), help="Instead of an id: end what hangs in this topic.")
@click.option("-p", "--partition", type=Whole(0), help="Only in this partition of the topic.")
@click.option("--producer", type=Whole(0, bits=64), help="Only of this producer id.")
@yes_option
@dry_run_option
@output_option
@talks_to_brokers
@click.pass_obj
def abort(
    session: Session,
    transactional_id: str | None,
    topic: str | None,
    partition: int | None,
    producer: int | None,
    yes: bool,
    dry_run: bool,
    form: Form,
) -> None:
    """Abort a transaction.

    With an ID, its producer is fenced: whatever it has open is aborted, and it has to begin anew.
    With --topic, transactions that hang there are ended in their partitions; those that a
    coordinator knows are left to it.
    """
    if (transactional_id is None) == (topic is None):
        raise click.UsageError(
            "which one? Give a transactional id, or --topic for what hangs there"
        )
    if transactional_id is not None:
        found = session.run(lambda client: client.admin.describe_transaction(transactional_id))
        print_rows([_described_row(found)], _COLUMNS, form)
        question = f"Fence the producer of {transactional_id}, and abort what it has open?"
        if confirm(question, yes=yes, dry_run=dry_run):
            session.run(lambda client: client.admin.fence_producer(transactional_id))
            notice("aborted")
        return
    assert topic is not None
    hanging = session.run(lambda client: _find(client, topic, partition, producer))
    if not hanging:
        where = topic if partition is None else f"{topic}-{partition}"
        raise TidemarkError(
            f"nothing hangs in {where}: `tidemark txn list` shows what is open, and "
            "`tidemark txn abort ID` ends it"
        )
    print_rows(list(map(_hanging_row, hanging)), _COLUMNS, form)
    if confirm("Abort what hangs?", yes=yes, dry_run=dry_run):
        session.run(lambda client: _abort_all(client, hanging))


async def _find(
    client: Client, topic: str, partition: int | None, producer: int | None
) -> list[HangingTransaction]:
    description = await client.admin.describe_topic(topic)
    if partition is not None and all(
        each.partition != partition for each in description.partitions
    ):
        raise TidemarkError(f"{topic} has no partition {partition}")
    led = led_partitions([description], partition)
    found = await client.admin.find_hanging_transactions(led)
    return [each for each in found if producer in (None, each.producer_id)]


async def _abort_all(client: Client, hanging: Sequence[HangingTransaction]) -> None:
    async def abort_one(each: HangingTransaction) -> str:
        await client.admin.abort_hanging_transaction(each)
        return f"aborted {_name(each)}"

    await do_each(hanging, abort_one, name=_name)


def _name(hanging: HangingTransaction) -> str:
    return f"what producer {hanging.producer_id} has open in {hanging.partition}"
