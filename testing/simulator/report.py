"""What many runs have come to: how much was simulated, what broke, and what was never tried."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

from tidemark.testing.simulator.coverage import PHASES, Coverage
from tidemark.testing.simulator.kinds import TIMED_KINDS
from tidemark.testing.simulator.known_marks import known_marks
from tidemark.testing.simulator.run import Verdict

_AFTER = "after "
_TENTHS: Final = 10


@dataclass(slots=True)
class Report:
    """Sums over runs."""

    runs: int = 0
    repeated: int = 0
    """Of the runs: their seeds were run a second time, in another process."""
    failures: list[Verdict] = field(default_factory=list)
    seconds: float = 0.0
    """Of simulated time."""
    cpu_seconds: float = 0.0
    events: int = 0
    coverage: Coverage = field(default_factory=Coverage)
    new_states: list[int] = field(default_factory=list)
    """By each run: those that no run before it had seen."""

    def add(self, verdict: Verdict) -> None:
        self.runs += 1
        self.repeated += verdict.was_repeated
        if not verdict.passed:
            self.failures.append(verdict)
        self.seconds += verdict.at
        self.cpu_seconds += verdict.cpu_seconds
        self.events += verdict.events
        self.new_states.append(len(verdict.coverage.states - self.coverage.states))
        self.coverage.add(verdict.coverage)

    @property
    def hours(self) -> float:
        return self.seconds / 3600

    @property
    def counts(self) -> Mapping[str, int]:
        """Elections, commits, client operations and the like."""
        return self.coverage.counts

    @property
    def faults(self) -> dict[str, Counter[str]]:
        """How often each fault was done in each phase of the protocol, also those never done."""
        found = {kind: Counter[str]() for kind in TIMED_KINDS}
        return self._cells(found, is_answer=False)

    @property
    def answers(self) -> dict[str, Counter[str]]:
        """The same of what followed a moment: by the moment."""
        return self._cells({}, is_answer=True)

    @property
    def marks(self) -> Mapping[str, int]:
        """The rare branches that were taken, and how often."""
        return self.coverage.marks

    @property
    def marks_never(self) -> list[str]:
        """The rare branches that no run has taken."""
        return sorted(known_marks() - self.marks.keys())

    @property
    def states(self) -> int:
        """In how many ways groups were seen (`novelty`)."""
        return len(self.coverage.states)

    @property
    def plateau(self) -> list[int]:
        """The new states of each tenth of the runs, or of each run where there are fewer."""
        parts = min(_TENTHS, self.runs)
        ends = [self.runs * number // parts for number in range(parts + 1)] if parts else []
        return [sum(self.new_states[start:end]) for start, end in pairwise(ends)]

    def to_json(self) -> dict[str, Any]:  # Any: JSON
        return {
            "runs": self.runs,
            "repeated": self.repeated,
            "failed": len(self.failures),
            "failures": [_failure(verdict) for verdict in self.failures],
            "simulated_hours": round(self.hours, 4),
            "cpu_seconds": round(self.cpu_seconds, 2),
            "events": self.events,
            "counts": dict(sorted(self.counts.items())),
            "faults": {kind: _with_sum(phases) for kind, phases in self.faults.items()},
            "answers": {moment: _with_sum(phases) for moment, phases in self.answers.items()},
            "states": self.states,
            "new_states": self.plateau,
            "marks": dict(sorted(self.marks.items())),
            "marks_never": self.marks_never,
        }

    def _cells(self, found: dict[str, Counter[str]], *, is_answer: bool) -> dict[str, Counter[str]]:
        for (kind, phase), count in sorted(self.coverage.cells.items()):
            if kind.startswith(_AFTER) == is_answer:
                found.setdefault(kind.removeprefix(_AFTER), Counter())[phase] += count
        return found


def _with_sum(phases: Counter[str]) -> dict[str, int]:
    return {"count": phases.total()} | {phase: phases[phase] for phase in PHASES}


def _failure(verdict: Verdict) -> dict[str, Any]:  # Any: JSON
    return {
        "seed": verdict.seed,
        "invariant": verdict.invariant,
        "what": verdict.what,
        "at": verdict.at,
        "digest": verdict.digest,
        "faults": len(verdict.tape),
    }
