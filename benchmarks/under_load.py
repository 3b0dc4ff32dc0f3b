"""How long does a producer wait at a third of the full speed, with what is safest?

Three replicas, `flush=commit`, acks=all, on a schedule: latency counts from when a request was due.
The full speed is that of the same workload a moment before. All three brokers, their syncs and the
load share this machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from benchmarks.harness import Row
from benchmarks.matrix.command import open_generators
from benchmarks.matrix.measured import latency_rows
from benchmarks.matrix.run import measure as measure_workload
from benchmarks.matrix.session import Plan
from benchmarks.matrix.targets import open_target
from benchmarks.matrix.workload import BASE

_PLAN: Final = Plan(runs=5, seconds=1.0, latency_seconds=4.0)
_P99_MS_MAX: Final = 8.0


def measure(directory: Path) -> Iterator[Row]:
    """The percentiles, for requests of 16 KB over one connection."""
    workload = replace(BASE, name="safe", replicas=3, flush="commit")
    with open_generators() as load, open_target(directory / "under-load", 3) as target:
        measured = measure_workload(target, workload, load, _PLAN)
    assert measured.rate is not None
    case = f"16 KB requests at {_PLAN.load:.0%} of full speed, 3 replicas, flush=commit, acks=all"
    yield Row(
        question="latency on a schedule: the rate",
        case=case,
        value=measured.rate,
        unit="requests/s",
        runs=_PLAN.runs,
    )
    yield from latency_rows(
        "latency on a schedule", case, measured.latencies["acknowledged"], p99=_P99_MS_MAX
    )
