"""Making a failing run smaller: which of its faults matter (ddmin)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from tidemark.testing.simulator.faults import Fault
from tidemark.testing.simulator.scenarios import Scenario


def shrink(scenario: Scenario, invariant: str, *, runs_max: int = 200) -> Scenario:
    """The same failure with as few faults as `runs_max` runs can find."""
    tape, parts, runs = list(scenario.tape), 2, 0
    while len(tape) >= 2 and parts <= len(tape) and runs < runs_max:
        smaller = None
        for rest in _complements(tape, parts):
            runs += 1
            if Scenario(scenario.seed, scenario.knobs, rest).run().invariant == invariant:
                smaller = rest
                break
        if smaller is not None:
            tape, parts = smaller, max(2, parts - 1)
        else:
            parts = len(tape) + 1 if parts == len(tape) else min(len(tape), 2 * parts)
    return Scenario(scenario.seed, scenario.knobs, tape)


def _complements(tape: Sequence[Fault], parts: int) -> list[list[Fault]]:
    """The tape without each of `parts` pieces of it."""
    bounds = [len(tape) * i // parts for i in range(parts + 1)]
    return [[*tape[:a], *tape[b:]] for a, b in pairwise(bounds)]
