"""Runs as files: a seed, its knobs and its tape, to be run again whatever the drawing becomes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tidemark.testing.simulator.faults import Fault
from tidemark.testing.simulator.knobs import Knobs
from tidemark.testing.simulator.run import Verdict, simulate


@dataclass(frozen=True, slots=True)
class Scenario:
    """All that a run depends on."""

    seed: int
    knobs: Knobs
    tape: Sequence[Fault]

    def run(self, *, lines_max: int = 0) -> Verdict:
        return simulate(self.seed, knobs=self.knobs, script=self.tape, lines_max=lines_max)


def read_scenario(path: Path) -> Scenario:
    values = json.loads(path.read_text())
    knobs = Knobs.from_json(values["knobs"])
    return Scenario(values["seed"], knobs, [Fault.from_json(fault) for fault in values["tape"]])


def write_scenario(directory: Path, verdict: Verdict) -> Path:
    """A file for a run, named by its seed."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"seed-{verdict.seed}.json"
    path.write_text(json.dumps(verdict.to_json(), indent=1) + "\n")
    return path
