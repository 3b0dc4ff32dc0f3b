"""What every benchmark shares: rows, medians, the machine, and the two files a run leaves.

A figure on its own says little, since machines differ and virtual ones are noisy; so a row may
carry a ratio to a limit that was measured in the same run, and the aim it was measured against.
"""

import json
import os
import platform
import statistics
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TypedDict, Unpack

from rich.console import Console
from rich.table import Table

RESULTS = Path(__file__).parent / "results"

_CONGESTION_CONTROL: Final = Path("/proc/sys/net/ipv4/tcp_congestion_control")

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
    aim: float | None = None  # the least acceptable ratio, or value where there is no ratio
    at_most: bool = False  # the aim is an upper bound
    spread: float | None = None  # half of what lay between its runs, as a share of the median
    low: float | None = None  # the least of the runs
    high: float | None = None

    @property
    def reached(self) -> bool | None:
        if self.aim is None:
            return None
        figure = self.value if self.ratio is None else self.ratio
        return figure <= self.aim if self.at_most else figure >= self.aim

    def __str__(self) -> str:
        ratio = "" if self.ratio is None else f", {self.ratio:.0%} of {self.against}"
        spread = "" if self.spread is None else f" ± {self.spread:.0%}"
        return f"{self.question}, {self.case}: {figure(self.value)} {self.unit}{spread}{ratio}"

    @property
    def is_cost(self) -> bool:
        """Whether less is better: times and sizes, but not what is done in a time."""
        rates = ("/s", "rows", "%")
        return self.at_most or (self.aim is None and not self.unit.endswith(rates))


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
    """Figures that were measured in turn with what they are held to; the spread is the ratio's."""
    ratios = [value / bound for value, bound in pairs]
    values = [value for value, _ in pairs]
    return Row(
        question=question,
        case=case,
        value=statistics.median(values),
        unit=unit,
        runs=len(pairs),
        against=against,
        ratio=statistics.median(ratios),
        spread=spread_of(ratios),
        low=min(values),
        high=max(values),
        **aim,
    )


def in_pairs(
    measured: Callable[[], float], limit: Callable[[], float], *, runs: int
) -> list[tuple[float, float]]:
    """Both in turn, `runs` times, after a first pair that is not counted."""
    measured(), limit()
    return [(measured(), limit()) for _ in range(runs)]


def median_of(runs: int, measure: Callable[[], float]) -> float:
    """The median of `runs` calls; a first call that is not counted warms what there is to warm."""
    measure()
    return statistics.median(measure() for _ in range(runs))


def spread_of(figures: Sequence[float]) -> float:
    """Half of what lies between them, as a share of their median."""
    return (max(figures) - min(figures)) / 2 / statistics.median(figures)


def machine() -> dict[str, str]:
    """What the figures were measured on, as far as it can be read."""
    model = next(
        (
            line.split(":", 1)[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.processor(),
    )
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    return {
        "cpu": model,
        "cores": str(os.cpu_count()),
        "memory": f"{memory:.0f} GiB",
        "kernel": platform.release(),
        "congestion_control": _CONGESTION_CONTROL.read_text().strip(),
        "python": platform.python_version(),
        "load": " ".join(f"{load:.2f}" for load in os.getloadavg()),
    }


def warm_page_cache(directory: Path, size_bytes: int) -> None:
    """Write and delete a file of `size_bytes`.

    On a virtual machine the first touch of memory goes through the host and is ten times slower;
    without this the first benchmark would measure that.
    """
    path = directory / "warm"
    block = bytes(1 << 20)
    with path.open("wb", buffering=0) as file:
        for _ in range(size_bytes >> 20):
            file.write(block)
    path.unlink()


def with_bytecode(directory: Path) -> dict[str, str]:
    """The environment of a broker that is installed: compiled, by the first start at the latest.

    Where Python is told to write no bytecode, as in many containers, every start of a checkout
    compiles all modules anew, and that is half of it.
    """
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPYCACHEPREFIX": str(directory)}


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


def commit() -> str:
    """The short name of the commit that is checked out, or `unknown` outside a checkout."""
    result = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parent,
        check=False,
    )
    return result.stdout.strip() or "unknown"


def figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def aim_of(row: Row) -> str:
    if row.aim is None:
        return ""
    sign = "≤" if row.at_most else "≥"
    return f"{sign} {figure(row.aim)}" if row.ratio is None else f"{sign} {row.aim:.0%}"
