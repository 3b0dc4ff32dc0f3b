"""`python -m benchmarks.compare [OLD NEW]`: what changed between two runs, beyond their noise.

Without files, the two newest in `results/`. Where a row has a ratio to a limit of its own run, that
is compared: a machine that was slow that day was slow for both. Ends with 1 if something fell.
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from benchmarks.harness import RESULTS, Row, figure

NOISE: Final = 0.15
"""Of a row that does not say how far its runs lay apart."""


class Verdict(Enum):
    BETTER = "[green]better"
    WORSE = "[red]worse"
    SAME = "same"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One row of both runs."""

    old: Row
    new: Row

    @property
    def factor(self) -> float:
        """The new figure, or ratio, as a multiple of the old one."""
        if self.old.ratio is not None and self.new.ratio is not None:
            return self.new.ratio / self.old.ratio
        return self.new.value / self.old.value

    @property
    def noise(self) -> float:
        """By which share two runs of the same may differ: both have theirs."""
        old, new = (NOISE if row.spread is None else row.spread for row in (self.old, self.new))
        return old + new

    @property
    def verdict(self) -> Verdict:
        if 1 / (1 + self.noise) <= self.factor <= 1 + self.noise:
            return Verdict.SAME
        has_grown = self.factor > 1
        return Verdict.WORSE if has_grown is self.new.is_cost else Verdict.BETTER


def changes(old: Sequence[Row], new: Sequence[Row]) -> list[Change]:
    """The rows that both have, in the order of `new`; none that was zero."""
    before = {(row.question, row.case): row for row in old}
    pairs = [(before.get((row.question, row.case)), row) for row in new]
    return [
        Change(old=was, new=row)
        for was, row in pairs
        if was is not None and was.value > 0 and row.value > 0
    ]


def load(path: Path) -> tuple[Mapping[str, str], list[Row]]:
    """The machine and the rows of a result. Raises `ValueError` for a file that is none."""
    try:
        document = json.loads(path.read_text())
        return document["machine"], [Row(**row) for row in document["rows"]]
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is no result of `python -m benchmarks`: {error}") from error


def newest(directory: Path = RESULTS) -> list[Path]:
    return sorted(directory.glob("*.json"), key=lambda path: (path.stat().st_mtime, path.name))


def table(found: Sequence[Change], *, only_changed: bool) -> Table:
    shown = Table("question", "case", "old", "new", "times", "noise", "")
    for change in found:
        if only_changed and change.verdict is Verdict.SAME:
            continue
        old, new = change.old, change.new
        shown.add_row(
            new.question,
            new.case,
            _shown(old),
            _shown(new),
            f"{change.factor:.2f}",
            f"± {change.noise:.0%}",
            change.verdict.value,
        )
    return shown


def _shown(row: Row) -> str:
    ratio = "" if row.ratio is None else f" ({row.ratio:.0%})"
    return f"{figure(row.value)} {row.unit}{ratio}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare", description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, metavar="OLD NEW")
    parser.add_argument("--all", action="store_true", help="show what has not changed, too")
    chosen = parser.parse_args()
    files = chosen.files or newest()[-2:]
    if len(files) != 2:
        parser.error("two results are compared: name them, or run `make bench` once more")
    console = Console()
    try:
        (old_machine, old), (new_machine, new) = map(load, files)
    except (OSError, ValueError) as error:
        parser.error(str(error))
    for name in sorted({*old_machine, *new_machine} - {"load"}):
        if old_machine.get(name) != new_machine.get(name):
            was, now = old_machine.get(name), new_machine.get(name)
            console.print(f"[yellow]another machine: {name} was {was}, is {now}")
    found = changes(old, new)
    console.print(f"{files[0].name} → {files[1].name}: {len(found)} rows in both")
    console.print(table(found, only_changed=not chosen.all))
    return int(any(change.verdict is Verdict.WORSE for change in found))


if __name__ == "__main__":
    sys.exit(main())
