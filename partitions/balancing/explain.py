"""Plans as tables of words: what a terminal shows, and what a test reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tidemark.partitions.balancing.eligibility import Role
from tidemark.partitions.balancing.leaders import Plan
from tidemark.partitions.balancing.refusals import Refusal
from tidemark.protocol.values import dataclass

_ROLES = {Role.TAKES: "", Role.LEFT_ALONE: "left alone", Role.EMPTIED: "being emptied"}


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of words under column headings."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def lines(self) -> list[str]:
        """As plain text, columns aligned."""
        widths = [
            max(len(row[at]) for row in (self.columns, *self.rows))
            for at in range(len(self.columns))
        ]
        return [_line(row, widths) for row in (self.columns, *self.rows)]


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip()


def explain(plan: Plan) -> tuple[Table, ...]:
    """The objective's terms, the brokers, the moves, and what is not done: a table each. One that
    would have no rows is left out."""
    tables = (_objective(plan), _brokers(plan), _moves(plan), refusals_table(plan.refusals))
    return tuple(table for table in tables if table.rows)


def _objective(plan: Plan) -> Table:
    before, after, weights = plan.before, plan.after, plan.before.weights
    rows = [("leaders misplaced", "first", str(before.misplaced), str(after.misplaced))]
    for term, name in (
        ("leaders per broker", "count"),
        ("leaders per topic", "topic"),
        ("traffic", "rate"),
        ("preferred leaders", "preferred"),
    ):
        was, now = getattr(before, name), getattr(after, name)
        rows.append((term, f"{getattr(weights, name):g}", _number(was), _number(now)))
    rows.append(("in all", "", _number(before.total), _number(after.total)))
    return Table("Unevenness", ("term", "weight", "before", "after"), tuple(rows))


def _number(value: float) -> str:
    # Where sums of differences should be 0, rounding leaves something.
    return "0" if abs(value) < 1e-12 else f"{value:.6g}"


def _brokers(plan: Plan) -> Table:
    return Table(
        "Brokers",
        ("broker", "leaders", "then", "traffic", "then", ""),
        tuple(
            (
                str(broker.node_id),
                str(broker.leaders_before),
                str(broker.leaders_after),
                f"{broker.share_before:.1%}",
                f"{broker.share_after:.1%}",
                _ROLES[broker.role],
            )
            for broker in plan.brokers
        ),
    )


def _moves(plan: Plan) -> Table:
    return Table(
        "Moves",
        ("step", "partition", "from", "to", "gain", "why"),
        tuple(
            (
                str(move.step),
                str(move.partition),
                str(move.source),
                str(move.target),
                f"{move.gain:.3g}" if move.gain else "",
                move.reason,
            )
            for move in plan.moves
        ),
    )


def refusals_table(refusals: Iterable[Refusal]) -> Table:
    return Table(
        "Not moved",
        ("reason", "to", "groups", "such as", "why not"),
        tuple(
            (
                refusal.reason.value,
                str(refusal.target) if refusal.target is not None else "",
                str(refusal.groups),
                str(refusal.partition) if refusal.partition is not None else "",
                refusal.sentence,
            )
            for refusal in refusals
        ),
    )
