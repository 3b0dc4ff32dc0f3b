"""How brokers are: rows to be printed, and the waiting until one is as it is wanted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import click

from tidemark.cli.output import Column, Form, Json, Section, notice, print_rows, print_sections
from tidemark.cli.waiting import live_table
from tidemark.protocol.errors import ErrorCode, RequestError, TidemarkError

if TYPE_CHECKING:
    from tidemark.client import BrokerStatus, Client

_LOOK_SECONDS: Final = 0.5
_COLUMNS: Final = (
    Column("node_id"),
    Column("state"),
    Column("up"),
    Column("controller"),
    Column("leaders"),
    Column("replicas"),
    Column("size_bytes"),
    Column("bytes_in_per_second", heading="in/s"),
    Column("bytes_out_per_second", heading="out/s"),
    Column("left"),
    Column("rack", wide=True),
    Column("up_seconds", wide=True),
    Column("leaders_coming", heading="coming", wide=True),
    Column("leaders_going", heading="going", wide=True),
    Column("replicas_going", wide=True),
)
_NARROW: Final = tuple(column for column in _COLUMNS if not column.wide)
_IN_THE_WAY: Final = (Column("node_id"), Column("in_the_way"))


async def follow(
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
    print_brokers(found, form)
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


def print_brokers(found: Sequence[BrokerStatus], form: Form) -> None:
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
        "bytes_in_per_second": one.bytes_in_per_second,
        "bytes_out_per_second": one.bytes_out_per_second,
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
