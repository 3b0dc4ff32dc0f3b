"""How each aim fared from run to run: the table that tells what is missed from what is noise."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from benchmarks.harness import Row, aim_of, figure
from benchmarks.report.kept import Result, newest_rows

RUNS_MAX: Final = 9
_SHARE_MIN: Final = 0.25
"""Of the aims: a run that was asked for less says little of how the others lay."""
_SAYS: Final = """\
The newest runs that had a quarter of these figures and more, the newest first, and what three
million steps of a loop took at each: the speed of the machine in that hour. What was missed is
bold. The aims are today's; the code, and the limits that it was held to, were each commit's."""

Case = tuple[str, str]


def aimed_at(results: Sequence[Result]) -> dict[Case, Row]:
    """Each figure that has an aim, of the newest result that has it."""
    newest = (row for row, _ in newest_rows(results))
    return {(row.question, row.case): row for row in newest if row.aim is not None}


def large_runs(results: Sequence[Result]) -> list[Result]:
    """The newest that have a good part of the aims."""
    wanted = _SHARE_MIN * len(aimed_at(results))
    return [r for r in results if sum(row.aim is not None for row in r.rows) >= wanted][:RUNS_MAX]


def over_time(results: Sequence[Result]) -> str:
    """The table, in Markdown; empty unless there are two runs to compare."""
    runs, aims = large_runs(results), aimed_at(results)
    if len(runs) < 2:
        return ""
    heads = [f"{run.commit} {run.machine.get('loop', '')}".strip() for run in runs]
    lines = [
        "## The same, from run to run",
        "",
        _SAYS,
        "",
        f"| | case | aim | {' | '.join(heads)} |",
        f"|---|---|---|{'---|' * len(runs)}",
    ]
    for (question, case), row in aims.items():
        cells = [_cell(found) for found in of_runs(row, runs)]
        lines.append(f"| {question} | {case} | {aim_of(row)} | {' | '.join(cells)} |")
    reached = [_reached(run, aims.values()) for run in runs]
    lines.append(f"| **reached** | | | {' | '.join(reached)} |")
    return "\n".join(lines)


def of_runs(today: Row, runs: Sequence[Result]) -> list[Row | None]:
    """The figure in each run, held to today's aim; `None` where it is not there, or was held to
    nothing where it is held to a limit today."""
    found = [run.value(today.question, today.case) for run in runs]
    return [
        replace(row, aim=today.aim, at_most=today.at_most)
        if row is not None and (row.ratio is None) == (today.ratio is None)
        else None
        for row in found
    ]


def _cell(row: Row | None) -> str:
    if row is None:
        return ""
    text = figure(row.value) if row.ratio is None else f"{row.ratio:.0%}"
    return text if row.reached else f"**{text}**"


def _reached(run: Result, aims: Iterable[Row]) -> str:
    there = [row for today in aims for row in of_runs(today, [run]) if row is not None]
    return f"{sum(row.reached is True for row in there)} of {len(there)}"
