"""`tidemark leader balance`: even out who leads what, and say why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import click

from tidemark.cli.confirm import dry_run_option
from tidemark.cli.output import Column, Form, Json, Section, output_option, print_sections
from tidemark.cli.session import Session, talks_to_brokers
from tidemark.cli.waiting import timeout_option
from tidemark.protocol.errors import TidemarkError

if TYPE_CHECKING:
    from tidemark.client import BalancePlan, Client

_LOOK_SECONDS: Final = 0.5
_MOVES_SHOWN: Final = 20
_TERMS: Final = (Column("term"), Column("weight"), Column("before"), Column("after"))
_BROKERS: Final = (
    Column("broker"),
    Column("leaders"),
    Column("leaders_then", heading="then"),
    Column("traffic"),
    Column("traffic_then", heading="then"),
    Column("role"),
)
_MOVES: Final = (
    Column("step"),
    Column("partition"),
    Column("source", heading="from"),
    Column("target", heading="to"),
    Column("gain"),
    Column("why"),
)
_REFUSALS: Final = (
    Column("reason"),
    Column("to"),
    Column("partitions"),
    Column("such_as", heading="such as"),
    Column("why_not", heading="why not"),
)


@click.command()
@dry_run_option
@click.option(
    "--explain",
    is_flag=True,
    help="Show what is uneven, each move's reason, and why other leaders do not move.",
)
@click.option(
    "--now",
    is_flag=True,
    help="Do not wait for partitions that have just moved, nor for brokers that have just started, "
    "have just got a full disk, or have room on it again.",
)
@click.option("--wait", is_flag=True, help="Wait until no more leaders are to move.")
@timeout_option
@output_option
@talks_to_brokers
@click.pass_obj
def balance(
    session: Session,
    dry_run: bool,
    explain: bool,
    now: bool,
    wait: bool,
    timeout_seconds: float,
    form: Form,
) -> None:
    """Spread leaders evenly over the brokers: by number, by topic and by traffic.

    The cluster does this by itself, unless `leader.balance.enable` is off. The command has it done
    now, or shows what would be done and why. A few leaders move at a time.
    """

    async def run(client: Client) -> BalancePlan:
        plan = await client.admin.balance_leaders(dry_run=dry_run, now=now)
        if wait and not dry_run:
            await _wait_even(client, now=now, timeout_seconds=timeout_seconds)
        return plan

    plan = session.run(run)
    _print(plan, explain, form, is_begun=not dry_run)


async def _wait_even(client: Client, *, now: bool, timeout_seconds: float) -> None:
    """Raises `TidemarkError` after that long."""
    import trio

    with trio.move_on_after(timeout_seconds):
        while True:
            await trio.sleep(_LOOK_SECONDS)
            brokers = await client.admin.describe_brokers()
            if any(each.leaders_coming for each in brokers):
                continue
            if not (await client.admin.balance_leaders(dry_run=True, now=now)).moves:
                return
    raise TidemarkError(
        f"leaders are not even within {timeout_seconds:g} s; they go on moving, and `tidemark "
        "leader balance --dry-run --explain` shows what is left"
    )


def _print(plan: BalancePlan, explain: bool, form: Form, *, is_begun: bool) -> None:
    terms, brokers, moves, refusals = _terms(plan), _brokers(plan), _moves(plan), _refusals(plan)
    document: dict[str, Json] = {
        "balances_by_itself": plan.is_enabled,
        "begun": is_begun,
        "unevenness": terms,
        "brokers": brokers,
        "moves": moves,
        "not_moved": refusals,
    }
    facts: dict[str, Json] = {
        "moves": len(moves),
        "begun": is_begun and bool(moves),
        "balances-by-itself": plan.is_enabled,
    }
    sections = [
        Section(title="brokers", rows=brokers, columns=_BROKERS),
        Section(
            title="moves" if explain or len(moves) <= _MOVES_SHOWN else "the first moves",
            rows=moves if explain else moves[:_MOVES_SHOWN],
            columns=_MOVES if explain else _MOVES[:4],
        ),
    ]
    if explain:
        sections.insert(0, Section(title="unevenness", rows=terms, columns=_TERMS))
        sections.append(Section(title="not moved", rows=refusals, columns=_REFUSALS))
    print_sections(document, facts, sections, form)


def _terms(plan: BalancePlan) -> Sequence[Mapping[str, Json]]:
    rows: list[dict[str, Json]] = [
        {
            "term": term.name,
            "weight": "first" if term.weight is None else f"{term.weight:g}",
            "before": _number(term.before),
            "after": _number(term.after),
        }
        for term in plan.terms
    ]
    weighted = [(term.weight, term) for term in plan.terms if term.weight is not None]
    rows.append(
        {
            "term": "in all",
            "weight": "",
            "before": _number(sum(weight * term.before for weight, term in weighted)),
            "after": _number(sum(weight * term.after for weight, term in weighted)),
        }
    )
    return rows


def _number(value: float) -> str:
    # Where sums of differences should be 0, rounding leaves something.
    return "0" if abs(value) < 1e-12 else f"{value:.6g}"


def _brokers(plan: BalancePlan) -> Sequence[Mapping[str, Json]]:
    return [
        {
            "broker": each.node_id,
            "leaders": each.leaders_before,
            "leaders_then": each.leaders_after,
            "traffic": f"{each.share_before:.1%}",
            "traffic_then": f"{each.share_after:.1%}",
            "role": each.role,
        }
        for each in plan.brokers
    ]


def _moves(plan: BalancePlan) -> Sequence[Mapping[str, Json]]:
    return [
        {
            "step": move.step,
            "partition": str(move.topic_partition),
            "source": move.source,
            "target": move.target,
            "gain": f"{move.gain:.3g}" if move.gain else None,
            "why": move.reason,
        }
        for move in plan.moves
    ]


def _refusals(plan: BalancePlan) -> Sequence[Mapping[str, Json]]:
    return [
        {
            "reason": each.reason,
            "to": each.target,
            "partitions": each.partitions,
            "such_as": None if each.topic_partition is None else str(each.topic_partition),
            "why_not": each.sentence,
        }
        for each in plan.refusals
    ]
