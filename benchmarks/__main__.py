"""`python -m benchmarks [QUESTION…]`: measure, show a table, leave JSON and a plot in `results/`.

The questions are `limits`, `lifecycle`, `latency`, `columns`, `clients`, `idempotence`,
`compaction`, `replication`, `scaling`, `observers`, `moving`, `balancing`, `rebalance` and
`spark`; without a name, all.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from rich.console import Console

from benchmarks import (
    against_limits,
    balancing,
    clients,
    columns,
    compacting,
    idempotence,
    latency,
    lifecycle,
    moving,
    observers,
    plot,
    rebalance,
    replication,
    scaling,
    spark,
)
from benchmarks.harness import Row, machine, save, show, warm_page_cache
from benchmarks.limits import sync_latency

WARM_BYTES = 2 << 30

Question = Callable[[Path], Iterable[Row]]


def _disk(directory: Path) -> Iterator[Row]:
    measured = sync_latency(directory)
    for case, value in (
        ("append 4 KB, p50", measured.append_p50),
        ("append 4 KB, p99", measured.append_p99),
        ("overwrite 4 KB, p50", measured.overwrite_p50),
        ("overwrite 4 KB, p99", measured.overwrite_p99),
    ):
        yield Row(question="fdatasync of this disk", case=case, value=value, unit="ms", runs=500)


def _limits(directory: Path) -> Iterator[Row]:
    yield from _disk(directory)
    yield from against_limits.measure(directory)


QUESTIONS: dict[str, Question] = {
    "limits": _limits,
    "lifecycle": lifecycle.measure,
    "latency": latency.measure,
    "columns": lambda _: columns.run(),
    "clients": clients.measure,
    "idempotence": idempotence.measure,
    "compaction": compacting.measure,
    "replication": replication.measure,
    "scaling": scaling.measure,
    "observers": observers.measure,
    "moving": moving.measure,
    "balancing": balancing.measure,
    "rebalance": rebalance.measure,
    "spark": spark.measure,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("questions", nargs="*", metavar="QUESTION", help=", ".join(QUESTIONS))
    parser.add_argument("--no-save", action="store_true", help="only show the table")
    chosen = parser.parse_args()
    if unknown := set(chosen.questions) - set(QUESTIONS):
        parser.error(f"no such question: {', '.join(sorted(unknown))}")
    console = Console()
    console.print(machine())
    rows = _measure([*chosen.questions] or list(QUESTIONS), console)
    show(rows, console)
    if not chosen.no_save:
        path = save(rows)
        plot.save(rows, path.with_suffix(".png"))
        console.print(f"kept in {path} and beside it")
    return 0


def _measure(questions: list[str], console: Console) -> list[Row]:
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="tidemark-bench-") as folder:
        directory = Path(folder)
        with console.status("warming the page cache"):
            warm_page_cache(directory, WARM_BYTES)
        for question in questions:
            with console.status(f"measuring: {question}"):
                for row in QUESTIONS[question](directory):
                    rows.append(row)
                    ratio = "" if row.ratio is None else f", {row.ratio:.0%} of {row.against}"
                    figure = f"{row.value:,.3g} {row.unit}{ratio}"
                    console.print(f"  {row.question}, {row.case}: {figure}", soft_wrap=True)
    return rows


if __name__ == "__main__":
    sys.exit(main())
