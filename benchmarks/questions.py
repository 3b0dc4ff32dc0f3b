"""The questions there are, how long each takes, and which of them fit into the time there is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Final

from rich.console import Console

from benchmarks.harness import Row
from benchmarks.limits import sync_latency
from benchmarks.matrix.command import measure_matrix, seconds_of
from benchmarks.matrix.session import FULL, QUICK, Plan
from benchmarks.matrix.side_by_side import measure_side_by_side
from benchmarks.matrix.targets import other_target
from benchmarks.matrix.workload import Workload, chosen


@dataclass(slots=True, kw_only=True)
class Context:
    """What a question is asked with. `details` are kept beside the rows."""

    directory: Path
    console: Console
    only: Sequence[str] = ()
    against: str | None = None
    called: str | None = None
    """The name of what is there, with its version."""
    is_quick: bool = False
    details: dict[str, object] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    """Which questions got no answer, and why."""

    @property
    def plan(self) -> Plan:
        return QUICK if self.is_quick else FULL

    @property
    def workloads(self) -> list[Workload]:
        return chosen(self.only, quick=self.is_quick)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """`minutes` is how long it took on two quiet cores."""

    measure: Callable[[Context], Iterable[Row]]
    minutes: float
    is_quick: bool = False
    """Whether a quick run asks it."""


def _limits(context: Context) -> Iterator[Row]:
    yield from sync_latency(context.directory).rows("fdatasync of this disk")
    yield from _asks("against_limits")(context)


def _matrix(context: Context) -> Iterator[Row]:
    if context.against is None:
        results = measure_matrix(
            context.directory, context.workloads, context.plan, context.console
        )
    else:
        other = other_target(context.against, called=context.called)
        results = measure_side_by_side(
            context.directory, context.workloads, context.plan, other, context.console
        )
    context.details["workloads"] = results.workloads
    context.failures += results.failures
    yield from results.rows


def _resources(context: Context) -> Iterator[Row]:
    from benchmarks import resources

    yield from resources.measure(context.directory, context.details)


def _columns(context: Context) -> Iterable[Row]:
    from benchmarks import columns

    del context
    return columns.run()


def _asks(module: str) -> Callable[[Context], Iterable[Row]]:
    """`measure` of one of the modules here, each of which imports what only it needs."""

    def measure(context: Context) -> Iterator[Row]:
        yield from import_module(f"benchmarks.{module}").measure(context.directory)

    return measure


QUESTIONS: Final[dict[str, Question]] = {
    "limits": Question(measure=_limits, minutes=2.5, is_quick=True),
    "lifecycle": Question(measure=_asks("lifecycle"), minutes=0.4, is_quick=True),
    "scaling": Question(measure=_asks("scaling"), minutes=2.3, is_quick=True),
    "librdkafka": Question(measure=_asks("librdkafka"), minutes=0.3, is_quick=True),
    "fan-out": Question(measure=_asks("fan_out"), minutes=1.8, is_quick=True),
    "under-load": Question(measure=_asks("under_load"), minutes=0.7, is_quick=True),
    "replication": Question(measure=_asks("replication"), minutes=3.5, is_quick=True),
    "matrix": Question(measure=_matrix, minutes=0.0, is_quick=True),
    "resources": Question(measure=_resources, minutes=0.7),
    "idle": Question(measure=_asks("idle"), minutes=3.0),
    "latency": Question(measure=_asks("latency"), minutes=1.0),
    "idempotence": Question(measure=_asks("idempotence"), minutes=4.5),
    "transactions": Question(measure=_asks("transactions"), minutes=2.5),
    "columns": Question(measure=_columns, minutes=0.2),
    "observers": Question(measure=_asks("observers"), minutes=0.5),
    "rebalance": Question(measure=_asks("rebalance"), minutes=0.8),
    "balancing": Question(measure=_asks("balancing"), minutes=0.5),
    "compaction": Question(measure=_asks("compacting"), minutes=1.0),
    "moving": Question(measure=_asks("moving"), minutes=2.0),
    "clients": Question(measure=_asks("clients"), minutes=3.0),
    "spark": Question(measure=_asks("spark"), minutes=3.0),
}
"""In the order of what is asked first when there is not time for all."""


def minutes_of(name: str, context: Context) -> float:
    if name == "matrix":
        twice = 1 if context.against is None else 2
        return twice * seconds_of(context.workloads, context.plan) / 60
    return QUESTIONS[name].minutes


def asked(
    names: Sequence[str], context: Context, *, budget_minutes: float | None = None
) -> tuple[list[str], list[str]]:
    """The questions to ask, and those that there is no time for.

    Without names, all, or in a quick run those that it has; within a budget, as long as they fit.
    Raises `ValueError` for a workload that there is none of.
    """
    wanted = [*names] or [
        name for name, question in QUESTIONS.items() if question.is_quick or not context.is_quick
    ]
    if "matrix" in wanted:
        chosen(context.only)
    if budget_minutes is None:
        return wanted, []
    taken: list[str] = []
    for name in wanted:
        total = sum(minutes_of(each, context) for each in (*taken, name))
        if total <= budget_minutes:
            taken.append(name)
    return taken, [name for name in wanted if name not in taken]
