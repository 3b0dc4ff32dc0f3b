"""End transactions that should not be open."""

from collections.abc import Sequence

import click

from tidemark.cli.arguments import Name
from tidemark.cli.confirm import confirm, dry_run_option, yes_option
from tidemark.cli.each import do_each
from tidemark.cli.numbers import Whole
from tidemark.cli.output import Form, notice, output_option, print_rows
from tidemark.cli.session import Session, talks_to_brokers
from tidemark.cli.txn.rows import COLUMNS, described_row, hanging_row
from tidemark.cli.txn.search import places_in, warn_of
from tidemark.client import Client, HangingTransaction
from tidemark.protocol.errors import TidemarkError


@click.command()
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
        print_rows([described_row(found)], COLUMNS, form)
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
    print_rows(list(map(hanging_row, hanging)), COLUMNS, form)
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
    places = places_in([description], partition)
    warn_of(places.leaderless)
    found = await client.admin.find_hanging_transactions(places.led)
    return [each for each in found if producer in (None, each.producer_id)]


async def _abort_all(client: Client, hanging: Sequence[HangingTransaction]) -> None:
    async def abort_one(each: HangingTransaction) -> str:
        await client.admin.abort_hanging_transaction(each)
        return f"aborted {_name(each)}"

    await do_each(hanging, abort_one, name=_name)


def _name(hanging: HangingTransaction) -> str:
    return f"what producer {hanging.producer_id} has open in {hanging.partition}"
