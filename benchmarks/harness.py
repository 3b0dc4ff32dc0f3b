"""What every benchmark shares: rows, medians, pairs, and the file that a run leaves.

A figure on its own says little, since machines differ and virtual ones are noisy; so a row may
carry a ratio to a limit that was measured in the same run, and the aim it was measured against.
"""

import json
import os
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TypedDict, Unpack

from rich.console import Console
from rich.table import Table

from benchmarks.machine import commit, machine

RESULTS = Path(__file__).parent / "results"

PAIRS: Final = 16
"""Of broker and limit, each of a fifth of a second or so: a machine whose processors go now at one
speed and now at half of it mostly keeps one for as long as a pair takes."""
_QUARTILES_FROM: Final = 8
"""Of so many figures the outermost say how bad a moment can be, and not how sure the median is."""

STEADY_LEADERS: Final = {"leader.balance.enable": "false"}
"""For brokers whose load goes to who leads when it begins: where the lead moves it is refused."""
LIMIT: Final = "limit: "
"""What the rows of the machine itself are called."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One figure: what was asked, the case, the median, and what it is held against."""

    question: str
    case: str
    value: float
    unit: str
    runs: int = 1
    against: str | None = None
    ratio: float | None = None  # value / the figure named in `against`, of the same run
    ratio_low: float | None = None  # the quartiles of the pairs' ratios, as `bounds_of` has them
    ratio_high: float | None = None
    aim: float | None = None  # the least acceptable ratio, or value where there is no ratio
    at_most: bool = False  # the aim is an upper bound
    spread: float | None = None  # how far its runs lay apart, as `spread_of` has it
    low: float | None = None  # the least of the runs
    high: float | None = None

    @property
    def reached(self) -> bool | None:
        if self.aim is None:
            return None
        figure = self.value if self.ratio is None else self.ratio
        return figure <= self.aim if self.at_most else figure >= self.aim

    def __str__(self) -> str:
        ratio = "" if self.ratio is None else f", {self.ratio_text}"
        return f"{self.question}, {self.case}: {self.value_text}{ratio}"

    @property
    def value_text(self) -> str:
        """With its spread, if that is not the ratio's."""
        is_of_ratio = self.spread is None or self.ratio_low is not None
        return f"{figure(self.value)} {self.unit}{'' if is_of_ratio else f' ± {self.spread:.0%}'}"

    @property
    def ratio_text(self) -> str:
        """With what lay between its quartiles, where that is known; empty without a ratio."""
        if self.ratio is None:
            return ""
        if self.ratio_low is None or self.ratio_high is None:
            return f"{self.ratio:.0%} of {self.against}"
        bounds = f"{100 * self.ratio_low:.0f} to {100 * self.ratio_high:.0f}"
        return f"{self.ratio:.0%} ({bounds}) of {self.against}"

    @property
    def is_cost(self) -> bool:
        """Whether less is better: times and sizes, but not what is done in a time."""
        is_rate = self.unit.endswith(("/s", "/s of a core", "%"))
        return self.at_most or (self.aim is None and not is_rate)


class Aim(TypedDict, total=False):
    """What a figure is to reach, as `Row` has it."""

    aim: float | None
    at_most: bool


def row_of(
    question: str,
    case: str,
    unit: str,
    values: Sequence[float],
    *,
    against: str | None = None,
    bound: float | None = None,
    **aim: Unpack[Aim],
) -> Row:
    """The median of the runs with how far they lay apart, held against a limit of the same run."""
    middle = statistics.median(values)
    return Row(
        question=question,
        case=case,
        value=middle,
        unit=unit,
        runs=len(values),
        against=against if bound else None,
        ratio=middle / bound if bound else None,
        spread=spread_of(values) if middle else None,
        low=min(values),
        high=max(values),
        **aim,
    )


def row_of_pairs(
    question: str,
    case: str,
    unit: str,
    pairs: Sequence[tuple[float, float]],
    *,
    against: str,
    **aim: Unpack[Aim],
) -> Row:
    """Figures that were measured in turn with what they are held to; the spread is the ratio's,
    the median of the pairs' own."""
    ratios = [value / bound for value, bound in pairs]
    values = [value for value, _ in pairs]
    ratio_low, ratio_high = bounds_of(ratios)
    return Row(
        question=question,
        case=case,
        value=statistics.median(values),
        unit=unit,
        runs=len(pairs),
        against=against,
        ratio=statistics.median(ratios),
        ratio_low=ratio_low,
        ratio_high=ratio_high,
        spread=spread_of(ratios),
        low=min(values),
        high=max(values),
        **aim,
    )


def in_pairs(
    measured: Callable[[], float],
    limit: Callable[[], float],
    *,
    runs: int = PAIRS,
    at_rest: bool = False,
) -> list[tuple[float, float]]:
    """Both in turn, `runs` times, after a first pair that is not counted.

    Who goes first changes each time: whatever one leaves behind for the other, memory that is warm
    or a processor that has slowed down, it gets back. But for what is still to be written to the
    disk: who waits for the disk would pay for it, and who does not would not. With `at_rest` there
    is nothing of that left when either begins.
    """

    def begun(run: Callable[[], float]) -> float:
        if at_rest:
            os.sync()
        return run()

    pairs: list[tuple[float, float]] = []
    for number in range(1 + runs):
        if number % 2:
            bound = begun(limit)
            pairs.append((begun(measured), bound))
        else:
            pairs.append((begun(measured), begun(limit)))
    return pairs[1:]


def median_of(runs: int, measure: Callable[[], float]) -> float:
    """The median of `runs` calls; a first call that is not counted warms what there is to warm."""
    measure()
    return statistics.median(measure() for _ in range(runs))


def bounds_of(figures: Sequence[float]) -> tuple[float, float]:
    """Between what the middle half of them lies; of few figures all of them."""
    if len(figures) < _QUARTILES_FROM:
        return min(figures), max(figures)
    low, _, high = statistics.quantiles(figures, n=4, method="inclusive")
    return low, high


def spread_of(figures: Sequence[float]) -> float:
    """Half of what lies between these bounds, as a share of their median."""
    low, high = bounds_of(figures)
    return (high - low) / 2 / statistics.median(figures)


def show(rows: Sequence[Row], console: Console) -> None:
    """The rows that have an aim, or all where none has, with a mark where it was missed."""
    table = Table("question", "case", "figure", "ratio", "aim", "", title="Benchmarks (medians)")
    for row in [row for row in rows if row.aim is not None] or rows:
        ratio = "" if row.ratio is None else f"{row.ratio:.0%} of {row.against}"
        mark = {None: "", True: "[green]reached", False: "[red]missed"}[row.reached]
        table.add_row(
            row.question, row.case, f"{figure(row.value)} {row.unit}", ratio, aim_of(row), mark
        )
    console.print(table)


def save(
    rows: Sequence[Row],
    directory: Path = RESULTS,
    *,
    details: Mapping[str, object] | None = None,
) -> Path:
    """Write `<date>-<time>-<commit>.json`; returns its path."""
    directory.mkdir(parents=True, exist_ok=True)
    now = datetime.now(UTC)
    path = directory / f"{now:%Y-%m-%d-%H%M%S}-{commit()}.json"
    document = {
        "machine": machine(),
        "commit": commit(),
        "at": now.isoformat(timespec="seconds"),
        **(details or {}),
        "rows": [asdict(row) for row in rows],
    }
    path.write_text(json.dumps(document, indent=1) + "\n")
    return path


def figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def aim_of(row: Row) -> str:
    if row.aim is None:
        return ""
    sign = "≤" if row.at_most else "≥"
    return f"{sign} {figure(row.aim)}" if row.ratio is None else f"{sign} {row.aim:.0%}"
