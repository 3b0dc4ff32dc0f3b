"""`python -m benchmarks.compare [OLD NEW]`: what changed between two runs, beyond their noise.

Without files, the newest in `results/` with what the earlier ones have, of each figure the newest.
Where a row has a ratio to a limit of its own run, that is compared: a machine that was slow that
day was slow for both. Beyond the noise is what lies further off than the runs of both lay apart. Of
hundreds of rows a few are by chance: what counts is what a second run shows again. Ends with 1 if
something fell.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from benchmarks.harness import LIMIT, RESULTS, Row, figure
from benchmarks.report.kept import Result, newest_first, newest_rows, read

NOISE: Final = 0.15
"""Of a row that was measured once, or does not say how far its runs lay apart."""
NOISE_MIN: Final = 0.05
"""Two runs differ by so much however close their own runs lay: no machine is the same twice."""


class Verdict(Enum):
    BETTER = "[green]better"
    WORSE = "[red]worse"
    SAME = "[default]same"


_VERDICT_BY_AIM: Final[dict[tuple[bool | None, bool | None], Verdict]] = {
    (True, False): Verdict.WORSE,
    (False, True): Verdict.BETTER,
}
"""By whether the aim was reached before, and is now."""


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
        return max(NOISE_MIN, _noise_of(self.old) + _noise_of(self.new))

    @property
    def has_factor(self) -> bool:
        """Of what was nothing, or is, nothing is a multiple."""
        return self.old.value > 0 and self.new.value > 0

    @property
    def verdict(self) -> Verdict:
        if not self.has_factor:
            return _VERDICT_BY_AIM.get((self.old.reached, self.new.reached), Verdict.SAME)
        if 1 / (1 + self.noise) <= self.factor <= 1 + self.noise:
            return Verdict.SAME
        has_grown = self.factor > 1
        return Verdict.WORSE if has_grown is self.new.is_cost else Verdict.BETTER


def _noise_of(row: Row) -> float:
    return NOISE if row.spread is None or row.runs == 1 else row.spread


def changes(old: Sequence[Row], new: Sequence[Row]) -> list[Change]:
    """The rows that both have, in the order of `new`."""
    before = {(row.question, row.case): row for row in old}
    pairs = [(before.get((row.question, row.case)), row) for row in new]
    return [Change(old=was, new=row) for was, row in pairs if was is not None]


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
            f"{change.factor:.2f}" if change.has_factor else "",
            f"± {change.noise:.0%}" if change.has_factor else "",
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
    try:
        results = [read(path) for path in reversed(chosen.files)] or [
            result for result in newest_first(RESULTS) if result.rows
        ]
    except (OSError, ValueError) as error:
        parser.error(str(error))
    if len(results) < 2 or len(chosen.files) not in (0, 2):
        parser.error("two results are compared: name them, or run `make bench` once more")
    new, *earlier = results
    console = Console()
    _tell_machine(new, earlier[0], console)
    old = [row for row, _ in newest_rows(earlier)]
    found = changes(old, new.rows)
    of_machine = [change for change in found if change.new.question.startswith(LIMIT)]
    of_broker = [change for change in found if change not in of_machine]
    console.print(f"{new.path.name}: {len(of_broker)} rows that were measured before")
    console.print(table(of_broker, only_changed=not chosen.all))
    for change in of_machine:
        if change.verdict is not Verdict.SAME:
            what = f"{change.new.case}, {change.new.question.removeprefix(LIMIT)}"
            console.print(f"the machine itself: {what}: {change.factor:.2f} times")
    verdicts = Counter(change.verdict for change in of_broker)
    console.print(", ".join(f"{verdicts[verdict]} {verdict.value}[/]" for verdict in Verdict))
    return int(verdicts[Verdict.WORSE] > 0)


def _tell_machine(new: Result, old: Result, console: Console) -> None:
    for name in sorted({*old.machine, *new.machine} - {"load"}):
        if old.machine.get(name) != new.machine.get(name):
            was, now = old.machine.get(name), new.machine.get(name)
            console.print(f"[yellow]another machine: {name} was {was}, is {now}")


if __name__ == "__main__":
    sys.exit(main())
