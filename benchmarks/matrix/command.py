"""`python -m benchmarks matrix`: the workloads, one after the other, each on brokers of its own."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from rich.console import Console

from benchmarks.harness import Row, figure
from benchmarks.load.generator import open_generator
from benchmarks.matrix.limits import Limits
from benchmarks.matrix.measured import Measured
from benchmarks.matrix.run import measure
from benchmarks.matrix.session import Generators, Plan
from benchmarks.matrix.targets import open_target
from benchmarks.matrix.workload import Workload

_SHOWN: Final = ("bytes", "processor time a request", "processor time a MB")
_ELSE_SECONDS: Final = {1: 2.5, 3: 7.0}
"""What a workload takes beside its runs, by replicas: brokers, topic, warming."""


@dataclass(slots=True)
class Results:
    """Of a matrix: its rows, and what the page draws beside them."""

    rows: list[Row] = field(default_factory=list)
    workloads: list[dict[str, object]] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)


def seconds_of(workloads: Sequence[Workload], plan: Plan) -> float:
    """How long these take, about."""
    each = plan.runs * (plan.seconds + plan.latency_seconds)
    return sum(each + _ELSE_SECONDS[workload.replicas] for workload in workloads)


@contextmanager
def open_generators() -> Iterator[Generators]:
    with open_generator() as producer, open_generator() as consumer:
        yield Generators(producer=producer, consumer=consumer)


def measure_matrix(
    directory: Path, workloads: Sequence[Workload], plan: Plan, console: Console
) -> Results:
    results = Results()
    began = time.monotonic()
    with open_generators() as load:
        limits = Limits(directory, load.producer, plan)
        for number, workload in enumerate(workloads):
            left = seconds_of(workloads[number:], plan)
            where = f"[{number + 1}/{len(workloads)}] {workload.group}: {workload.name}"
            try:
                with console.status(f"{where} ({left / 60:.0f} min left)"):
                    limit = limits.of(workload)
                    measured = _on_brokers_of_its_own(directory, workload, load, plan)
            except Exception as error:  # the others' figures are not lost for it
                results.failures.append(f"{where}: {type(error).__name__}: {error}")
                continue
            results.rows += measured.rows(limit)
            results.workloads.append(measured.to_json())
            console.print(f"{where}: {summary(measured)}", soft_wrap=True, markup=False)
        results.rows += limits.rows()
    minutes = (time.monotonic() - began) / 60
    console.print(f"{len(workloads)} workloads in {minutes:.1f} min")
    return results


def _on_brokers_of_its_own(
    directory: Path, workload: Workload, load: Generators, plan: Plan
) -> Measured:
    """New ones, so that their memory is this workload's, and no dirty pages are another's."""
    folder = directory / "matrix"
    try:
        with open_target(folder, workload.replicas) as target:
            return measure(target, workload, load, plan)
    finally:
        shutil.rmtree(folder)


def summary(measured: Measured) -> str:
    told = [
        f"{row.question} {figure(row.value)} {row.unit}"
        for row in measured.rows(None)
        if row.question in _SHOWN or row.question.endswith(("p50", "p99"))
    ]
    return ", ".join(told)
