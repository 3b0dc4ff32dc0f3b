"""Making a failing run smaller, as long as it fails for the same reason.

First the faults that do not matter go (Zeller's ddmin), then whatever else the run can do without:
time, brokers, groups, clients, and knobs that are not at their defaults. Each part of a run draws
from a stream of its own, so what is left of it goes on as it did.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any, Final

from tidemark.testing.simulator.faults import Fault
from tidemark.testing.simulator.knobs import Knobs
from tidemark.testing.simulator.run import Verdict
from tidemark.testing.simulator.scenarios import Scenario

RUNS_MAX: Final = 400
_FEWER: Final = {
    "nodes": (1, 3),
    "voters": (1, 3),
    "groups": (1, 2),
    "producers": (0, 1),
    "consumers": (1,),
    "records_max": (1,),
}
"""What to try before a knob's default."""


@dataclass(frozen=True, slots=True)
class Step:
    """Where the shrinking is, for who watches."""

    runs: int
    scenario: Scenario


def shrink(
    scenario: Scenario,
    *,
    runs_max: int = RUNS_MAX,
    watch: Callable[[Step], None] = lambda _: None,
) -> Scenario:
    """The smallest run that at most `runs_max` runs can find and that breaks the same invariant.

    One that breaks none comes back as it is.
    """
    search = _Search(scenario, runs_max, watch)
    if not search.begin():
        return scenario
    before = None
    while before != search.best and search.has_runs:
        before = search.best
        search.cut_time()
        search.drop_faults()
        search.simplify_knobs()
    return search.best


class _Search:
    """`best` is the smallest run so far that fails as the first one did."""

    def __init__(self, scenario: Scenario, runs_max: int, watch: Callable[[Step], None]) -> None:
        self.best = scenario
        self._runs_left = self._runs_max = runs_max
        self._watch = watch
        self._at = 0.0  # when the best one fails
        self._tried: set[str] = set()

    @property
    def has_runs(self) -> bool:
        return self._runs_left > 0

    def begin(self) -> bool:
        """Whether it fails at all. From now on, what it breaks is what has to be broken."""
        self.best = replace(self.best, invariant=None)
        verdict = self._run(self.best)
        if verdict.passed:
            return False
        self._take(self.best, verdict)
        return True

    def cut_time(self) -> None:
        """End the faults where the failure is, or earlier: after the last of them, or halfway."""
        for end in (self._at, max((f.at for f in self.best.tape), default=0.0), self._at / 2):
            seconds = round(end + 0.001, 3)
            if seconds < self.best.knobs.seconds:
                tape = tuple(fault for fault in self.best.tape if fault.at <= seconds)
                knobs = replace(self.best.knobs, seconds=seconds)
                self._fails(replace(self.best, knobs=knobs, tape=tape))

    def drop_faults(self) -> None:
        """Leave out pieces of the tape, large ones first, until no single fault can go."""
        if self._fails(replace(self.best, tape=())):
            return
        parts = 2
        while len(self.best.tape) >= parts and self.has_runs:
            if any(self._fails(replace(self.best, tape=t)) for t in _without(self.best, parts)):
                parts = max(2, parts - 1)
            elif parts == len(self.best.tape):
                return
            else:
                parts = min(len(self.best.tape), 2 * parts)

    def simplify_knobs(self) -> None:
        for field in fields(Knobs):
            if field.name == "seconds":
                continue
            for value in (*_FEWER.get(field.name, ()), field.default):
                if value == getattr(self.best.knobs, field.name):
                    break  # what comes after it is no simpler
                if self._fails(_with_knob(self.best, field.name, value)):
                    break

    def _fails(self, candidate: Scenario) -> bool:
        """Whether it breaks the same invariant; it is the best one then."""
        text = candidate.to_text()
        if text in self._tried or not self.has_runs:
            return False
        self._tried.add(text)
        verdict = self._run(candidate)
        if verdict.invariant != self.best.invariant:
            return False
        self._take(candidate, verdict)
        return True

    def _run(self, candidate: Scenario) -> Verdict:
        self._runs_left -= 1
        self._watch(Step(self._runs_max - self._runs_left, self.best))
        return candidate.run()

    def _take(self, scenario: Scenario, verdict: Verdict) -> None:
        self.best = replace(scenario, invariant=verdict.invariant, what=verdict.what)
        self._at = verdict.at


def _without(scenario: Scenario, parts: int) -> Iterator[tuple[Fault, ...]]:
    """The tape without each of `parts` pieces of it."""
    tape = scenario.tape
    bounds = [len(tape) * part // parts for part in range(parts + 1)]
    for start, end in pairwise(bounds):
        yield (*tape[:start], *tape[end:])


def _with_knob(scenario: Scenario, name: str, value: Any) -> Scenario:  # Any: of any knob
    knobs = replace(scenario.knobs, **{name: value})
    if name == "nodes":
        knobs = replace(knobs, voters=min(knobs.voters, knobs.nodes))
    elif knobs.voters > knobs.nodes:
        knobs = replace(knobs, voters=knobs.nodes)
    tape = tuple(_among(fault, knobs.nodes) for fault in scenario.tape)
    return replace(scenario, knobs=knobs, tape=tape)


def _among(fault: Fault, nodes: int) -> Fault:
    """The fault in a cluster of so many brokers."""
    return replace(fault, links=tuple(link for link in fault.links if max(link) <= nodes))
