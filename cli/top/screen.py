"""The figures as a terminal shows them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from math import isinf
from typing import TYPE_CHECKING, Final, TypeVar

from tidemark.cli.health import HEALTHY
from tidemark.cli.output import cell
from tidemark.cli.top.figures import BrokerFigures, Figures, GroupFigures, TopicFigures
from tidemark.cli.top.fitting import Column, fitting_table

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

T = TypeVar("T")

_BARS: Final = "▁▂▃▄▅▆▇█"
_HISTORY: Final = 60
_STATES: Final = {"up": "green", "down": "bold red", "disk full": "bold red"}
WIDE: Final = 200
"""Cells of a frame that no terminal shows."""
_BROKERS: Final = (
    Column("BROKER"),
    Column("ADDRESS", spare=5),
    Column("RACK", spare=6),
    Column("STATE"),
    Column("LEADS", is_right=True, spare=3),
    Column("REPLICAS", is_right=True, spare=4),
    Column("LAG", is_right=True),
    Column("IN/S", is_right=True, spare=1),
    Column("OUT/S", is_right=True, spare=2),
)
_TOPICS: Final = (
    Column("TOPIC", is_name=True),
    Column("PARTITIONS", is_right=True, spare=1),
    Column("RECORDS/S", is_right=True),
    Column("TROUBLE"),
)
_GROUPS: Final = (
    Column("GROUP", is_name=True),
    Column("STATE", spare=1),
    Column("LAG", is_right=True),
    Column("READS/S", is_right=True, spare=2),
    Column("CAUGHT-UP-IN", is_right=True),
)
_FEW_ROWS: Final = 3
_AROUND: Final = 10
"""Lines that are no rows of topics or groups: headings, gaps, the first lines."""


class Screen:
    """Draws one frame after the other; remembers the rates that it has drawn."""

    def __init__(self) -> None:
        self._rates: deque[float] = deque(maxlen=_HISTORY)

    def frame(
        self, figures: Figures, *, width: int = WIDE, height: int | None = None
    ) -> RenderableType:
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
            _rate(figures, self._rates, width),
            "",
            _brokers(brokers, width),
            "",
            *_cut("topics", figures.topics(), rows, _topics, width),
            "",
            *_cut("groups", figures.groups(), rows, _groups, width),
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


def _rate(figures: Figures, rates: Sequence[float], width: int) -> Text:
    from rich.text import Text

    now = f"{figures.per_second:,.0f} records/s  "
    bars = sparkline(rates)[-max(width - len(now), 1) :]
    return Text.assemble((now, "bold"), (bars, "cyan"))


def _brokers(brokers: Sequence[BrokerFigures], width: int) -> Table:
    from rich.text import Text

    rows = []
    for each in brokers:
        state = Text(each.state, style=_STATES.get(each.state, "yellow"))
        if each.is_controller:
            state.append(" controller", style="dim")
        plain = map(Text, (str(each.node_id), cell(each.address), cell(each.rack)))
        counts = (str(each.leaders), str(each.replicas), cell(each.lag))
        rates = (_bytes(each.bytes_in), _bytes(each.bytes_out))
        rows.append([*plain, state, *map(Text, (*counts, *rates))])
    return fitting_table(_BROKERS, rows, width)


def _topics(topics: Sequence[TopicFigures], width: int) -> Table:
    from rich.text import Text

    rows = [
        [
            Text(cell(each.name)),
            Text(str(each.partitions)),
            Text(f"{each.per_second:,.0f}"),
            Text(cell(each.trouble), style="bold red" if each.trouble else "dim"),
        ]
        for each in topics
    ]
    return fitting_table(_TOPICS, rows, width)


def _groups(groups: Sequence[GroupFigures], width: int) -> Table:
    from rich.text import Text

    rows = []
    for each in groups:
        falls_behind = each.left_seconds is not None and isinf(each.left_seconds)
        left = Text(lasting(each.left_seconds), style="red" if falls_behind else "")
        lag = "-" if each.lag is None else f"{each.lag:,}"
        words = (cell(each.name), cell(each.state), lag, f"{each.per_second:,.0f}")
        rows.append([*map(Text, words), left])
    return fitting_table(_GROUPS, rows, width)


def _cut(
    what: str,
    rows: Sequence[T],
    most: int | None,
    draw: Callable[[Sequence[T], int], Table],
    width: int,
) -> Sequence[RenderableType]:
    """The table of the first rows, and how many there are beyond."""
    from rich.text import Text

    if not rows:
        return [Text(f"no {what}", style="dim")]
    if most is None or len(rows) <= most:
        return [draw(rows, width)]
    return [draw(rows[: most - 1], width), Text(f"{len(rows) - most + 1:,} more", style="dim")]


def _bytes(count: int | None) -> str:
    if count is None:
        return "-"
    amount = float(count)
    for unit in ("B", "KB", "MB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}"
        amount /= 1000
    return f"{amount:.1f} GB"
