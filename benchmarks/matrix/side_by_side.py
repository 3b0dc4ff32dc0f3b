"""The same workloads on ours and on another broker of this machine, in turn."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from rich.console import Console

from benchmarks.harness import Row, row_of_pairs
from benchmarks.matrix.command import Results, open_generators, summary
from benchmarks.matrix.measured import UNITS, Measured
from benchmarks.matrix.run import measure
from benchmarks.matrix.session import Generators, Plan
from benchmarks.matrix.targets import Target, open_target
from benchmarks.matrix.workload import BASE, Workload

_WARM_SECONDS: Final = 15.0


def measure_side_by_side(
    directory: Path, workloads: Sequence[Workload], plan: Plan, other: Target, console: Console
) -> Results:
    """Ours and the other take turns for as many rounds as there are runs, after one that warms; who
    goes first changes each time.

    What ours has is told as a ratio to the other's, the median of the rounds' own.
    """
    results = Results()
    with open_generators() as load:
        # What runs in a virtual machine of its own compiles what it has run for a while.
        measure(other, BASE, load, replace(plan, runs=1, seconds=_WARM_SECONDS))
        for number, workload in enumerate(workloads):
            console.rule(f"{number + 1} of {len(workloads)}: {workload.name}")
            if workload.replicas > len(other.pids):
                console.print(f"left out: {other.name} is not {workload.replicas} brokers")
                continue
            with open_target(directory / "ours", workload.replicas) as ours:
                pair = _in_turn(ours, other, workload, load, plan)
            shutil.rmtree(directory / "ours")
            for measured in pair:
                results.workloads.append(measured.to_json())
                console.print(f"{measured.target}: {summary(measured)}", soft_wrap=True)
            results.rows += _rows(*pair)
    return results


def _in_turn(
    ours: Target, other: Target, workload: Workload, load: Generators, plan: Plan
) -> tuple[Measured, Measured]:
    once = replace(plan, runs=1)
    pair = (
        Measured(workload=workload, target=ours.name),
        Measured(workload=workload, target=other.name),
    )
    warm = [measure(target, workload, load, once) for target in (ours, other)]
    # The same rate for both, which the slower one can bear.
    rates = [measured.rate for measured in warm if measured.rate is not None]
    once = replace(once, rate=min(rates, default=None))
    sides = list(zip((ours, other), pair, strict=True))
    for number in range(plan.runs):
        for target, measured in reversed(sides) if number % 2 else sides:
            measured.add(measure(target, workload, load, once))
    return pair


def _rows(ours: Measured, other: Measured) -> Sequence[Row]:
    theirs = [replace(row, case=f"{row.case}, {other.target}") for row in other.rows(None)]
    return [*_in_pairs(ours, other), *_latencies(ours, other), *theirs]


def _in_pairs(ours: Measured, other: Measured) -> Iterator[Row]:
    """Figures of which each round has one of both."""
    for metric in [name for name in UNITS if name in ours.figures and name in other.figures]:
        pairs = list(zip(ours.figures[metric], other.figures[metric], strict=True))
        if all(theirs > 0 for _, theirs in pairs):
            case, unit = ours.workload.name, UNITS[metric]
            yield row_of_pairs(metric, case, unit, pairs, against=other.target)


def _latencies(ours: Measured, other: Measured) -> Iterator[Row]:
    """Percentiles of all rounds together."""
    theirs = {row.question: row.value for row in other.rows(None)}
    for row in ours.rows(None):
        if row.question not in UNITS and row.question in theirs:
            yield replace(row, against=other.target, ratio=row.value / theirs[row.question])
