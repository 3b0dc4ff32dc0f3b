"""The figures as a terminal shows them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from math import isinf
from typing import TYPE_CHECKING, Final, TypeVar

from tidemark.cli.health import HEALTHY
from tidemark.cli.output import cell
from tidemark.cli.top.figures import BrokerFigures, Figures, GroupFigures, TopicFigures

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

T = TypeVar("T")

_BARS: Final = "▁▂▃▄▅▆▇█"
_HISTORY: Final = 60
_STATES: Final = {"up": "green", "down": "bold red", "disk full": "bold red"}
_FEW_ROWS: Final = 3
_AROUND: Final = 10
"""Lines that are no rows of topics or groups: headings, gaps, the first lines."""


class Screen:
    """Draws one frame after the other; remembers the rates that it has drawn."""

    def __init__(self) -> None:
        self._rates: deque[float] = deque(maxlen=_HISTORY)

    def frame(self, figures: Figures, *, height: int | None = None) -> RenderableType:
        """All there is to see, in as many lines as the terminal has; `None`: as many as it takes.

        Of brokers there are all, of topics and groups those at the top of their lists.
        """
        from rich.console import Group

        self._rates.append(figures.per_second)
        brokers = list(figures.brokers())
        rows = None
        if height is not None:
            rows = max((height - _AROUND - len(brokers)) // 2, _FEW_ROWS)
        return Group(
            _headline(figures),
            _rate(figures, self._rates),
            "",
            _brokers(brokers),
            "",
            *_cut("topics", figures.topics(), rows, _topics),
            "",
            *_cut("groups", figures.groups(), rows, _groups),
        )


def sparkline(values: Sequence[float]) -> str:
    """A bar for each value, the highest as high as can be."""
    top = max(values, default=0.0)
    if top <= 0:
        return _BARS[0] * len(values)
    return "".join(_BARS[round(value / top * (len(_BARS) - 1))] for value in values)


def lasting(seconds: float | None) -> str:
    """How long something takes, in the largest unit that says enough."""
    if seconds is None:
        return "-"
    if isinf(seconds):
        return "never"
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


def _headline(figures: Figures) -> Text:
    from rich.text import Text

    facts = figures.now.facts
    verdict = figures.trouble or facts.verdict()
    partitions = sum(1 for _ in facts.partitions())
    return Text.assemble(
        ("tidemark top", "bold"),
        f"  cluster {cell(facts.description.cluster_id)}  ",
        (verdict, "green" if verdict == HEALTHY else "bold red"),
        f"  brokers {len(facts.node_ids)}, topics {len(facts.topics)}, partitions {partitions:,}",
    )


def _rate(figures: Figures, rates: Sequence[float]) -> Text:
    from rich.text import Text

    return Text.assemble(
        (f"{figures.per_second:,.0f} records/s  ", "bold"), (sparkline(rates), "cyan")
    )


def _brokers(brokers: Sequence[BrokerFigures]) -> Table:
    from rich.text import Text

    table = _table("BROKER", "ADDRESS", "RACK", "STATE", *map(_right, _BROKER_NUMBERS))
    for each in brokers:
        state = Text(each.state, style=_STATES.get(each.state, "yellow"))
        if each.is_controller:
            state.append(" controller", style="dim")
        table.add_row(
            str(each.node_id),
            cell(each.address),
            cell(each.rack),
            state,
            str(each.leaders),
            str(each.replicas),
            cell(each.lag),
            _bytes(each.bytes_in),
            _bytes(each.bytes_out),
        )
    return table


def _topics(topics: Sequence[TopicFigures]) -> Table:
    from rich.text import Text

    table = _table("TOPIC", *map(_right, ("PARTITIONS", "RECORDS/S")), "TROUBLE")
    for each in topics:
        table.add_row(
            Text(cell(each.name)),
            str(each.partitions),
            f"{each.per_second:,.0f}",
            Text(cell(each.trouble), style="bold red" if each.trouble else "dim"),
        )
    return table


def _groups(groups: Sequence[GroupFigures]) -> Table:
    from rich.text import Text

    table = _table("GROUP", "STATE", *map(_right, ("LAG", "READS/S", "CAUGHT-UP-IN")))
    for each in groups:
        falls_behind = each.left_seconds is not None and isinf(each.left_seconds)
        table.add_row(
            Text(cell(each.name)),
            cell(each.state),
            f"{each.lag:,}",
            f"{each.per_second:,.0f}",
            Text(lasting(each.left_seconds), style="red" if falls_behind else ""),
        )
    return table


def _cut(
    what: str, rows: Sequence[T], most: int | None, draw: Callable[[Sequence[T]], Table]
) -> Sequence[RenderableType]:
    """The table of the first rows, and how many there are beyond."""
    from rich.text import Text

    if not rows:
        return [Text(f"no {what}", style="dim")]
    if most is None or len(rows) <= most:
        return [draw(rows)]
    return [draw(rows[: most - 1]), Text(f"{len(rows) - most + 1:,} more", style="dim")]


_BROKER_NUMBERS: Final = ("LEADS", "REPLICAS", "LAG", "IN/S", "OUT/S")


def _right(heading: str) -> tuple[str, str]:
    return heading, "right"


def _table(*headings: str | tuple[str, str]) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for heading in headings:
        match heading:
            case str():
                table.add_column(heading, no_wrap=True)
            case (title, _):
                table.add_column(title, justify="right", no_wrap=True)
    return table


def _bytes(count: int | None) -> str:
    if count is None:
        return "-"
    amount = float(count)
    for unit in ("B", "KB", "MB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}"
        amount /= 1000
    return f"{amount:.1f} GB"
