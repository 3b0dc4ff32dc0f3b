"""Rows a second, by the clock and by the processor time of all that works for them."""

import os
import statistics
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

CORES: Final = 2


@dataclass(frozen=True, slots=True)
class Speed:
    """In millions of rows a second."""

    by_clock: float
    by_processor: float
    """If two cores did nothing else."""


def speed_of(count: int, work: Callable[[], object]) -> Speed:
    used, began = processor_seconds(), time.monotonic()
    work()
    seconds = time.monotonic() - began
    return Speed(count / seconds / 1e6, CORES * count / max(processor_seconds() - used, 0.01) / 1e6)


def median_speed(runs: int, measure: Callable[[], Speed]) -> Speed:
    """Of each of the two by itself; a first call that is not counted warms what there is."""
    measure()
    speeds = [measure() for _ in range(runs)]
    return Speed(
        statistics.median(speed.by_clock for speed in speeds),
        statistics.median(speed.by_processor for speed in speeds),
    )


def processor_seconds() -> float:
    """What this process and all that it has started have used, Spark's and the broker's."""
    parents, ticks = dict[int, int](), dict[int, int]()
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended
            fields = path.read_text().rpartition(")")[2].split()
            pid = int(path.parent.name)
            parents[pid], ticks[pid] = int(fields[1]), int(fields[11]) + int(fields[12])
    ours = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in ours} - ours:
        ours |= more
    return sum(ticks[pid] for pid in ours) / float(os.sysconf("SC_CLK_TCK"))
