"""Runs of the simulator: what one is, and many of them in several processes."""

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import Pool
from pathlib import Path
from typing import Final

from tidemark.testing.simulator import twice
from tidemark.testing.simulator.knobs import Layer
from tidemark.testing.simulator.run import SECONDS, Verdict, simulate
from tidemark.testing.simulator.scenarios import Scenario

_SEEDS_AT_ONCE: Final = 4
"""What a job takes at a time."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run that is to be done, here or in another process."""

    seed: int
    seconds: float
    layer: Layer = Layer.FULL
    scenario: Scenario | None = None
    name: str = ""
    lines_max: int = 0
    is_twice: bool = False

    def __call__(self) -> Verdict:
        if self.scenario is not None:
            return self.scenario.run(lines_max=self.lines_max)
        lines_max = twice.LINES_MAX if self.is_twice else self.lines_max
        verdict = simulate(self.seed, seconds=self.seconds, layer=self.layer, lines_max=lines_max)
        if not self.is_twice:
            return verdict
        return twice.compared(
            verdict, seconds=self.seconds, layer=self.layer, lines_max=self.lines_max
        )

    def again(self, verdict: Verdict) -> str:
        """The command that does it again."""
        if self.scenario is not None:
            return f"tidemark sim {self.name}"
        layer = "" if self.layer is Layer.FULL else f" --layer {self.layer.value}"
        is_usual = self.seconds == SECONDS[self.layer]
        seconds = "" if is_usual else f" --seconds {self.seconds:g}"
        again = " --twice" if verdict.invariant == twice.INVARIANT else ""
        return f"tidemark sim --seed {self.seed}{layer}{seconds}{again}"

    @property
    def stem(self) -> str:
        """Of the files that it is written to."""
        layer = "" if self.layer is Layer.FULL else f"{self.layer.value}-"
        return Path(self.name).stem if self.name else f"{layer}seed-{self.seed}"


@contextmanager
def verdicts_of(runs: Sequence[Run], jobs: int) -> Iterator[Iterator[Verdict]]:
    """The verdicts in the order of the runs, as they come."""
    if jobs == 1 or len(runs) == 1:
        yield (run() for run in runs)
        return
    # Not an executor: that one waits for the runs that have begun, also after Ctrl-C.
    with Pool(min(jobs, len(runs)), _leave_interrupts_to_the_parent) as pool:
        yield pool.imap(_do, runs, chunksize=min(_SEEDS_AT_ONCE, -(-len(runs) // jobs)))


def _leave_interrupts_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _do(run: Run) -> Verdict:
    return run()
