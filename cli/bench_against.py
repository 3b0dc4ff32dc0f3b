"""`tidemark bench --against`: the same work on two brokers in turn, and both side by side.

Rounds alternate, so that a noisy moment of the machine falls on both; the first of each warms and
is not counted. Where a broker's process is found on this machine, its processor time is told too:
load and brokers share the processors, so that is the fairer figure.
"""

import statistics
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from tidemark.cli.output import Column, Json
from tidemark.cli.processes import cpu_seconds, listener_of

COLUMNS: Final = (
    Column("what"),
    Column("unit"),
    Column("here"),
    Column("there"),
    Column("times"),
    Column("noise"),
    Column("rounds", wide=True),
)

Figures = Mapping[tuple[str, str], float]
"""By what was measured and its unit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of the two: how to measure it once, and its process, if that is on this machine."""

    measure: Callable[[], Figures]
    pid: int | None

    def once(self) -> Figures:
        if self.pid is None:
            return self.measure()
        before = cpu_seconds(self.pid)
        figures = dict(self.measure())
        figures["the broker's processor", "s"] = cpu_seconds(self.pid) - before
        return figures


def in_turn(here: Side, there: Side, rounds: int) -> list[dict[str, Json]]:
    """A row for each figure: medians, how far the rounds lay apart, and here as times there.

    Who goes first changes each time: whatever one leaves behind for the other, memory that is warm
    or a processor that has slowed down, it gets back.
    """
    here.once(), there.once()
    measured: list[tuple[Figures, Figures]] = []
    for number in range(rounds):
        if number % 2:
            measured.append((here.once(), there.once()))
        else:
            theirs = there.once()
            measured.append((here.once(), theirs))
    return [
        _row(name, [(ours[name], theirs[name]) for ours, theirs in measured])
        for name in measured[0][0]
        if name in measured[0][1]
    ]


def _row(name: tuple[str, str], pairs: Sequence[tuple[float, float]]) -> dict[str, Json]:
    what, unit = name
    ratios = [here / there for here, there in pairs if there]
    middle = statistics.median(ratios) if ratios else None
    return {
        "what": what,
        "unit": unit,
        "here": _rounded(statistics.median(here for here, _ in pairs)),
        "there": _rounded(statistics.median(there for _, there in pairs)),
        "times": middle and round(middle, 2),
        "noise": middle and round((max(ratios) - min(ratios)) / 2 / middle, 2),
        "rounds": [[_rounded(here), _rounded(there)] for here, there in pairs],
    }


def _rounded(value: float) -> float:
    """To four digits, which is more than there is to know."""
    return float(f"{value:.4g}")


def process_at(bootstrap: str) -> int | None:
    """The one broker's process, if it is on this machine and ours to look at."""
    _, _, port = bootstrap.rpartition(":")
    with suppress(LookupError, ValueError):
        return listener_of(int(port)) if "," not in bootstrap else None
    return None
