"""`tidemark broker`: look at brokers, drain them, have them lead again, let them go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import click

from tidemark.cli.broker_configs import alter, describe
from tidemark.cli.confirm import confirm, dry_run_option, yes_option
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
from tidemark.cli.waiting import live_table, timeout_option, wait_option
from tidemark.protocol.errors import ErrorCode, RequestError, TidemarkError

if TYPE_CHECKING:
    from tidemark.client import BrokerStatus, Client, StateChange

_LOOK_SECONDS: Final = 0.5
_COLUMNS: Final = (
    Column("node_id"),
    Column("state"),
    Column("up"),
    Column("controller"),
    Column("leaders"),
    Column("replicas"),
    Column("size_bytes"),
    Column("bytes_in_per_s", heading="in/s"),
    Column("bytes_out_per_s", heading="out/s"),
    Column("left"),
    Column("rack", wide=True),
    Column("up_seconds", wide=True),
    Column("leaders_coming", heading="coming", wide=True),
    Column("leaders_going", heading="going", wide=True),
    Column("replicas_going", wide=True),
)
_NARROW: Final = tuple(column for column in _COLUMNS if not column.wide)
_IN_THE_WAY: Final = (Column("node_id"), Column("in_the_way"))

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

    _print(session.run(ask), form)


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
        _say(change, f"broker {node_id} is drained: {change.leaders} leaders move away")
        if dry_run:
            _print_change(node_id, change, form)
        else:
            await _follow(client, node_id, form, wait=wait, timeout_seconds=timeout_seconds)

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
        _print(await client.admin.describe_brokers([node_id]), form)

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
            _print(await client.admin.describe_brokers([node_id]), form)
            return
        planned = await client.admin.decommission_broker(node_id, force=force, dry_run=True)
        if dry_run or not yes:
            _print_change(node_id, planned, form)
        if confirm(f"Move all off broker {node_id}?", yes=yes, dry_run=dry_run):
            await client.admin.decommission_broker(node_id, force=force)
            await _follow(client, node_id, form, wait=wait, timeout_seconds=timeout_seconds)

    session.run(run)


def _say(change: StateChange, what: str) -> None:
    for refusal in change.refusals:
        click.echo(f"tidemark: at a price: {refusal}", err=True)
    notice(what)


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
        [Section(title="in the way", rows=refused, columns=_IN_THE_WAY[1:])],
        form,
    )


# Waiting


async def _follow(
    client: Client, node_id: int, form: Form, *, wait: bool, timeout_seconds: float
) -> None:
    """Print what the broker is like; with `wait`, once it is as it is wanted."""
    import trio

    found = await _look(client, node_id)
    with trio.move_on_after(timeout_seconds), live_table(_NARROW) as show:
        while wait and not all(each.is_settled for each in found):
            show([_row(each) for each in found])
            await trio.sleep(_LOOK_SECONDS)
            found = await _look(client, node_id)
    _print(found, form)
    for each in found:
        if each.state == "decommissioned":
            click.echo(_farewell(each), err=True)
    if not found:
        notice(f"broker {node_id} is no broker of the cluster any more")
    if wait and not all(each.is_settled for each in found):
        raise TidemarkError(
            f"broker {node_id} is not done within {timeout_seconds:g} s; it goes on, and "
            f"`tidemark broker status {node_id}` shows how far it is"
        )


def _farewell(broker: BrokerStatus) -> str:
    """What is left to do about a broker that holds nothing any more."""
    stop_it = "stop it, and " if broker.is_alive else ""
    return (
        f"broker {broker.node_id} holds nothing any more: {stop_it}some seconds later the cluster "
        "has forgotten it"
    )


async def _look(client: Client, node_id: int) -> tuple[BrokerStatus, ...]:
    """One broker; none if it was forgotten, because all is done."""
    try:
        return await client.admin.describe_brokers([node_id])
    except RequestError as error:
        if error.code is not ErrorCode.BROKER_ID_NOT_REGISTERED:
            raise
        return ()


# Printing


def _print(found: Sequence[BrokerStatus], form: Form) -> None:
    print_rows([_row(each) for each in found], _COLUMNS, form)
    in_the_way: list[dict[str, Json]] = [
        {"node_id": each.node_id, "in_the_way": why} for each in found for why in each.stuck
    ]
    if form in (Form.TABLE, Form.WIDE):
        print_sections(
            {}, {}, [Section(title="in the way", rows=in_the_way, columns=_IN_THE_WAY)], form
        )


def _row(one: BrokerStatus) -> Mapping[str, Json]:
    return {
        "node_id": one.node_id,
        "state": one.state,
        "up": one.is_alive,
        "up_seconds": one.up_seconds,
        "controller": one.is_controller,
        "leaders": one.leaders,
        "replicas": one.replicas,
        "size_bytes": one.size_bytes,
        "bytes_in_per_s": one.bytes_in_per_s,
        "bytes_out_per_s": one.bytes_out_per_s,
        "rack": one.rack,
        "leaders_coming": one.leaders_coming,
        "leaders_going": one.leaders_going,
        "replicas_going": one.replicas_going,
        "left": _left(one),
        "left_seconds": one.left_seconds,
        "stuck": list(one.stuck),
    }


def _left(one: BrokerStatus) -> str | None:
    """How much longer, for people; nothing for a broker of which nothing is wanted."""
    if one.is_settled:
        return None
    return "?" if one.left_seconds is None else f"{one.left_seconds:.0f} s"
