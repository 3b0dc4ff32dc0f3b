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
_IN_ALL: Final = "in all"
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
    shown = [_shown_move(row) for row in (moves if explain else moves[:_MOVES_SHOWN])]
    sections = [
        Section(title="brokers", rows=list(map(_shown_broker, brokers)), columns=_BROKERS),
        Section(
            title="moves" if explain or len(moves) <= _MOVES_SHOWN else "the first moves",
            rows=shown,
            columns=_MOVES if explain else _MOVES[:4],
        ),
    ]
    if explain:
        sections.insert(
            0, Section(title="unevenness", rows=list(map(_shown_term, terms)), columns=_TERMS)
        )
        sections.append(Section(title="not moved", rows=refusals, columns=_REFUSALS))
    print_sections(document, facts, sections, form)


def _terms(plan: BalancePlan) -> list[dict[str, Json]]:
    """The last one is the sum of those that have a weight."""
    rows: list[dict[str, Json]] = [
        {
            "term": term.name,
            "weight": term.weight,
            "before": _near(term.before),
            "after": _near(term.after),
        }
        for term in plan.terms
    ]
    weighted = [(term.weight, term) for term in plan.terms if term.weight is not None]
    rows.append(
        {
            "term": _IN_ALL,
            "weight": None,
            "before": _near(sum(weight * term.before for weight, term in weighted)),
            "after": _near(sum(weight * term.after for weight, term in weighted)),
        }
    )
    return rows


def _near(value: float) -> float:
    # Where sums of differences should be 0, rounding leaves something.
    return 0.0 if abs(value) < 1e-12 else value


def _shown_term(row: dict[str, Json]) -> dict[str, Json]:
    weight = row["weight"]
    if weight is None:
        said = "" if row["term"] == _IN_ALL else "first"
    else:
        said = f"{weight:g}"
    return row | {"weight": said, "before": f"{row['before']:.6g}", "after": f"{row['after']:.6g}"}


def _brokers(plan: BalancePlan) -> list[dict[str, Json]]:
    return [
        {
            "broker": each.node_id,
            "leaders": each.leaders_before,
            "leaders_then": each.leaders_after,
            "traffic": each.share_before,
            "traffic_then": each.share_after,
            "role": each.role,
        }
        for each in plan.brokers
    ]


def _shown_broker(row: dict[str, Json]) -> dict[str, Json]:
    return row | {
        "traffic": f"{row['traffic']:.1%}",
        "traffic_then": f"{row['traffic_then']:.1%}",
    }


def _moves(plan: BalancePlan) -> list[dict[str, Json]]:
    return [
        {
            "step": move.step,
            "partition": str(move.topic_partition),
            "source": move.source,
            "target": move.target,
            "gain": move.gain or None,
            "why": move.reason,
        }
        for move in plan.moves
    ]


def _shown_move(row: dict[str, Json]) -> dict[str, Json]:
    return row | {"gain": None if row["gain"] is None else f"{row['gain']:.3g}"}


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
