"""What every benchmark shares: rows, medians, the machine, and the two files a run leaves.

A figure on its own says little, since machines differ and virtual ones are noisy; so a row may
carry a ratio to a limit that was measured in the same run, and the aim it was measured against.
"""

import json
import os
import platform
import statistics
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table

RESULTS = Path(__file__).parent / "results"


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

    @property
    def reached(self) -> bool | None:
        if self.aim is None:
            return None
        figure = self.value if self.ratio is None else self.ratio
        return figure <= self.aim if self.at_most else figure >= self.aim

    @property
    def is_cost(self) -> bool:
        """Whether less is better: times and sizes, but not what is done in a time."""
        rates = ("/s", "rows", "%")
        return self.at_most or (self.aim is None and not self.unit.endswith(rates))


def median_of(runs: int, measure: Callable[[], float]) -> float:
    """The median of `runs` calls; a first call that is not counted warms what there is to warm."""
    measure()
    return statistics.median(measure() for _ in range(runs))


def spread_of(figures: Sequence[float]) -> float:
    """Half of what lies between them, as a share of their median."""
    return (max(figures) - min(figures)) / 2 / statistics.median(figures)


def cpu_seconds(pid: int) -> float:
    """What a process has used of processors until now, in user and system mode."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


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


def show(rows: Sequence[Row], console: Console) -> None:
    """The rows as a table, with a mark where an aim was reached or missed."""
    table = Table("question", "case", "figure", "ratio", "aim", "", title="Benchmarks (medians)")
    for row in rows:
        ratio = "" if row.ratio is None else f"{row.ratio:.0%} of {row.against}"
        mark = {None: "", True: "[green]reached", False: "[red]missed"}[row.reached]
        table.add_row(
            row.question, row.case, f"{figure(row.value)} {row.unit}", ratio, _aim(row), mark
        )
    console.print(table)


def save(rows: Sequence[Row], directory: Path = RESULTS) -> Path:
    """Write `<date>-<commit>.json`; returns its path. The plot is `plot.save`'s."""
    directory.mkdir(parents=True, exist_ok=True)
    name = f"{datetime.now(UTC):%Y-%m-%d}-{commit()}"
    path = directory / f"{name}.json"
    document = {"machine": machine(), "commit": commit(), "rows": [asdict(row) for row in rows]}
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


def _aim(row: Row) -> str:
    if row.aim is None:
        return ""
    sign = "≤" if row.at_most else "≥"
    return f"{sign} {figure(row.aim)}" if row.ratio is None else f"{sign} {row.aim:.0%}"
