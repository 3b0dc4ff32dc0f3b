"""List and describe transactions."""

from collections.abc import Sequence
from typing import Final

import click

from tidemark.cli.arguments import Name
from tidemark.cli.output import (
    Column,
    Form,
    Json,
    Section,
    output_option,
    print_rows,
    print_sections,
)
from tidemark.cli.session import Session, talks_to_brokers
from tidemark.cli.txn.rows import COLUMNS, HANGS, hanging_row, listed_row, since
from tidemark.cli.txn.search import places_in, warn_of
from tidemark.client import Client, TransactionDescription

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


@click.command("list")
@click.option(
    "-s",
    "--state",
    "states",
    multiple=True,
    type=click.Choice([*_STATES, HANGS], case_sensitive=False),
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
    print_rows(session.run(lambda client: _look(client, states)), COLUMNS, form)


async def _look(client: Client, states: tuple[str, ...]) -> list[dict[str, Json]]:
    known = [each for each in states if each != HANGS]
    rows: list[dict[str, Json]] = []
    if known or not states:
        rows += await _listed_rows(client, known)
    if not states or HANGS in states:
        places = places_in(await client.admin.list_topics(internal=True))
        warn_of(places.leaderless)
        hanging = await client.admin.find_hanging_transactions(places.led)
        rows += [hanging_row(each) for each in hanging]
    return rows


async def _listed_rows(client: Client, states: Sequence[str]) -> list[dict[str, Json]]:
    listed = await client.admin.list_transactions(states=states)
    described = await client.admin.describe_transactions(
        each for each in listed if each.state not in _ENDED
    )
    return [listed_row(each, described.get(each.transactional_id)) for each in listed]


@click.command()
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
    }
    open_for = since("open_for", found.started_ms)
    rows = _partition_rows(found)
    print_sections(
        {**facts, **open_for, "partitions": rows},
        {
            **{key.replace("_", "-"): value for key, value in facts.items()},
            "open-for": open_for["open_for"],
        },
        [Section(title="partitions", rows=rows, columns=[Column("topic"), Column("partition")])],
        form,
    )


def _partition_rows(found: TransactionDescription) -> list[dict[str, Json]]:
    return [{"topic": each.topic, "partition": each.partition} for each in sorted(found.partitions)]
