"""`tidemark broker`: look at brokers, drain them, have them lead again, let them go."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from typing import TYPE_CHECKING

import click

from tidemark.cli.broker_configs import alter, describe
from tidemark.cli.broker_status import follow, print_brokers
from tidemark.cli.confirm import confirm, dry_run_option, yes_option
from tidemark.cli.numbers import Whole
from tidemark.cli.output import (
    Column,
    Form,
    Json,
    Section,
    notice,
    output_option,
    print_sections,
)
from tidemark.cli.session import Session, talks_to_brokers
from tidemark.cli.verbs import Verbs
from tidemark.cli.waiting import timeout_option, wait_option

if TYPE_CHECKING:
    from tidemark.client import BrokerStatus, Client, StateChange

force_option = click.option(
    "--force",
    is_flag=True,
    help="Do it even if it would leave partitions without a majority, or not all can move.",
)


@click.group(cls=Verbs)
def broker() -> None:
    """Look at brokers, drain them before they are stopped, and let them go."""


broker.add_command(describe)
broker.add_command(alter)


@broker.command()
@click.argument("node_ids", nargs=-1, type=Whole(0), metavar="[BROKER…]")
@output_option
@talks_to_brokers
@click.pass_obj
def status(session: Session, node_ids: tuple[int, ...], form: Form) -> None:
    """Show what brokers lead and hold, and how far they are from what is wanted of them.

    All brokers, unless some are named. LEFT is how long a drain or a decommission still
    takes, at its speed so far.
    """

    async def ask(client: Client) -> tuple[BrokerStatus, ...]:
        return await client.admin.describe_brokers(node_ids or None)

    print_brokers(session.run(ask), form)


@broker.command()
@click.argument("node_id", type=Whole(0), metavar="BROKER")
@force_option
@dry_run_option
@wait_option
@timeout_option
@output_option
@talks_to_brokers
@click.pass_obj
def drain(
    session: Session,
    node_id: int,
    force: bool,
    dry_run: bool,
    wait: bool,
    timeout_seconds: float,
    form: Form,
) -> None:
    """Move a broker's leaders to others, before it is stopped for a while.

    It keeps its replicas and its votes, and leads only what no other broker can lead. That lasts,
    over its restarts, until `tidemark broker resume`. It is refused where partitions would be
    without a majority if the broker were stopped.
    """

    async def run(client: Client) -> None:
        change = await client.admin.drain_broker(node_id, force=force, dry_run=dry_run)
        for refusal in change.refusals:
            click.echo(f"tidemark: at a price: {refusal}", err=True)
        if dry_run:
            _print_change(node_id, change, form)
        else:
            notice(f"broker {node_id} is drained: {change.leaders} leaders move away")
            await follow(client, node_id, form, wait=wait, timeout_seconds=timeout_seconds)

    session.run(run)


@broker.command()
@click.argument("node_id", type=Whole(0), metavar="BROKER")
@output_option
@talks_to_brokers
@click.pass_obj
def resume(session: Session, node_id: int, form: Form) -> None:
    """Have a broker lead again that was drained; give up its decommission.

    The balancer gives it leaders again over time; `tidemark leader balance --now` does so at once.
    """

    async def run(client: Client) -> None:
        await client.admin.resume_broker(node_id)
        notice(f"broker {node_id} takes leaders again")
        print_brokers(await client.admin.describe_brokers([node_id]), form)

    session.run(run)


@broker.command()
@click.argument("node_id", type=Whole(0), metavar="BROKER")
@click.option("--cancel", is_flag=True, help="Call it off: replicas being moved go back.")
@force_option
@dry_run_option
@yes_option
@wait_option
@timeout_option
@output_option
@talks_to_brokers
@click.pass_obj
def decommission(
    session: Session,
    node_id: int,
    cancel: bool,
    force: bool,
    dry_run: bool,
    yes: bool,
    wait: bool,
    timeout_seconds: float,
    form: Form,
) -> None:
    """Move all replicas off a broker that is to leave for good.

    Shows what has to be copied, and asks. Once the broker holds nothing it can be stopped, and the
    cluster forgets it. It is refused where replicas have no other broker to go to, or a partition
    has no majority to move them with.
    """

    async def run(client: Client) -> None:
        if cancel:
            await client.admin.resume_broker(node_id)
            notice(f"broker {node_id} stays")
            print_brokers(await client.admin.describe_brokers([node_id]), form)
            return
        planned = await client.admin.decommission_broker(node_id, force=force, dry_run=True)
        if dry_run:
            _print_change(node_id, planned, form)
        elif not yes:
            # It belongs to the question; the answer is how the broker is then.
            with redirect_stdout(sys.stderr):
                _print_change(node_id, planned, Form.TABLE)
        if confirm(f"Move all off broker {node_id}?", yes=yes, dry_run=dry_run):
            await client.admin.decommission_broker(node_id, force=force)
            await follow(client, node_id, form, wait=wait, timeout_seconds=timeout_seconds)

    session.run(run)


def _print_change(node_id: int, change: StateChange, form: Form) -> None:
    facts: dict[str, Json] = {
        "broker": node_id,
        "leaders": change.leaders,
        "replicas": change.replicas,
        "size_bytes": change.size_bytes,
    }
    refused: list[dict[str, Json]] = [{"in_the_way": str(each)} for each in change.refusals]
    print_sections(
        {**facts, "in_the_way": [str(each) for each in change.refusals]},
        {name.replace("_", "-"): value for name, value in facts.items()},
        [Section(title="in the way", rows=refused, columns=[Column("in_the_way")])],
        form,
    )
