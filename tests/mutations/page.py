"""The table of planted bugs in `docs/simulator.md`: read, and written row by row.

A hunt may be stopped at any time, and two may go on side by side: each row is put into the page as
soon as it is known, under a lock on the page, and all others stay what they are.
"""

import fcntl
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

BEGIN: Final = "<!-- planted bugs: begin -->"
END: Final = "<!-- planted bugs: end -->"
NOTHING: Final = "**nothing**"
STALE: Final = "†"
"""Beside the seed of a row that was made on an earlier tree."""
_HEAD = (
    "| rule that is broken | what notices | layer, seed | simulated | CPU |",
    "|---|---|---|---|---|",
)
_CELLS = 5
_WHERE = re.compile(r"(\w+), (\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What is known of one rule. All as it stands on the page."""

    name: str
    checker: str
    where: str
    simulated: str
    cpu: str

    @property
    def is_stale(self) -> bool:
        return STALE in self.where

    @property
    def found_at(self) -> tuple[str, int] | None:
        """The layer and the seed that noticed, if one did."""
        found = _WHERE.match(self.where)
        return None if found is None else (found[1], int(found[2]))

    @property
    def is_noticed(self) -> bool:
        return self.checker != NOTHING

    def __str__(self) -> str:
        cells = (self.name, self.checker, self.where, self.simulated, self.cpu)
        return f"| {' | '.join(cells)} |"


def rows_of(page: str) -> dict[str, Row]:
    """The rows of a page's table, by rule. Raises `ValueError` if it has none."""
    rows = {}
    for line in _parts(page)[1].splitlines():
        cells = [cell.strip() for cell in line.removeprefix("|").removesuffix("|").split("|")]
        if len(cells) == _CELLS and line not in _HEAD and cells[-1]:
            name, checker, where, simulated, cpu = cells
            rows[name] = Row(name=name, checker=checker, where=where, simulated=simulated, cpu=cpu)
    return rows


def with_rows(page: str, rows: Mapping[str, Row], areas: Mapping[str, tuple[str, ...]]) -> str:
    """The page with these rows in its table, in the order of the areas, and how many they are.
    Rows of rules that are in no area are left out."""
    lines = [*_HEAD]
    for area, names in areas.items():
        known = [str(rows[name]) for name in names if name in rows]
        lines += [f"| **{area}** | | | | |", *known] if known else []
    planted = [name for names in areas.values() for name in names]
    lines += ["", *_sums([rows[name] for name in planted if name in rows], planted)]
    before, _, after = _parts(page)
    return before + "\n".join([BEGIN, *lines, END]) + after


def put(path: Path, row: Row, areas: Mapping[str, tuple[str, ...]]) -> None:
    """Put one row into the page, in place of what it said of that rule."""
    with path.open("r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        page = file.read()
        page = with_rows(page, rows_of(page) | {row.name: row}, areas)
        file.seek(0)
        file.write(page)
        file.truncate()


def _sums(rows: list[Row], planted: list[str]) -> list[str]:
    noticed = sum(row.is_noticed for row in rows)
    stale = sum(row.is_stale for row in rows)
    hunted = {row.name for row in rows}
    missing = [f"*{name}*" for name in planted if name not in hunted]
    sums = f"{len(planted)} rules, of which {noticed} are noticed and {len(rows) - noticed} are not"
    if stale:
        sums += f"; {stale} rows ({STALE}) are of an earlier tree"
    if missing:
        sums += f". Not hunted yet: {', '.join(missing)}"
    return [f"{sums}."]


def _parts(page: str) -> tuple[str, str, str]:
    """What is before the table, the table, and what is behind it."""
    before, begin, rest = page.partition(BEGIN)
    table, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError("there is no table of planted bugs")
    return before, table, after
