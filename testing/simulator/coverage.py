"""What the runs have come to see: which faults hit which phases of the protocol, and which marks.

A night without a violation says nothing about what it never tried.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from tidemark.testing.simulator.novelty import State

PHASES: Final = (
    "idle",
    "electing",
    "opening an epoch",
    "replicating",
    "truncating",
    "catching up",
    "pausing",
    "handing over",
    "reconfiguring",
    "checkpointing",
    "recovering",
)


@dataclass(slots=True)
class Coverage:
    """Counts of one run, or of many."""

    cells: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By fault and phase."""
    marks: Counter[str] = field(default_factory=Counter)
    """Of the core's rare branches."""
    counts: Counter[str] = field(default_factory=Counter)
    """Elections, commits, messages and the like."""
    states: set[State] = field(default_factory=set)
    """In how many ways groups were seen (`novelty`). Only counted: a set's order is no run's."""

    def add(self, other: Coverage) -> None:
        self.cells.update(other.cells)
        self.marks.update(other.marks)
        self.counts.update(other.counts)
        self.states |= other.states
