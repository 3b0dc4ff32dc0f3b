"""A seed's run, a second time in another process: what comes of a seed must be its alone.

The order of a set, `id()`, the time of day, the seed of `hash()`: whatever of these gets into a run
makes its seed worthless, and most runs that it gets into look well. So one seed in a hundred is run
again where all of these are others, and what was noted of the two runs is compared.

As a command (`python -m tidemark.testing.simulator.twice SEED SECONDS LAYER`) this is that other
process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Final

from tidemark.testing.simulator.knobs import Layer
from tidemark.testing.simulator.run import Verdict, simulate

INVARIANT: Final = "a seed gives the same run"
LINES_MAX: Final = 1_000_000
"""More than a run has; both are kept whole."""
_EVERY: Final = 100
_HASH_SEEDS: Final = ("1", "2")


def is_due(seed: int) -> bool:
    """Whether it is run twice where many seeds are run."""
    return seed % _EVERY == 0


def compared(verdict: Verdict, *, seconds: float, layer: Layer, lines_max: int = 0) -> Verdict:
    """The verdict of a run of which all lines were kept, once the seed has been run again.

    Its own if that was the same; else that the two have parted, and where.
    """
    own = _account(verdict)
    seen = replace(
        verdict, lines=verdict.lines[-lines_max:] if lines_max else (), was_repeated=True
    )
    done = subprocess.run(
        [sys.executable, "-m", __spec__.name, str(verdict.seed), repr(seconds), layer.value],
        env=os.environ | {"PYTHONHASHSEED": _other_hash_seed()},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        what = f"the second run ended with status {done.returncode}:\n{done.stderr}"
    else:
        what = parted(own, json.loads(done.stdout))
    return replace(seen, invariant=INVARIANT, what=what) if what else seen


def parted(here: Sequence[str], there: Sequence[str]) -> str:
    """Where two accounts of one seed part; empty if they do not."""
    for number, (ours, theirs) in enumerate(zip_longest(here, there, fillvalue="nothing more")):
        if ours != theirs:
            before = f"after: {here[number - 1]}\n" if number else ""
            return (
                f"the second run, in another process, was another one from line {number + 1} on\n"
                f"{before}here:  {ours}\nthere: {theirs}"
            )
    return ""


def _account(verdict: Verdict) -> list[str]:
    """All that is the same in two runs that were the same."""
    lines = [f"{time:.9f} {node} {topic} {text}" for time, node, topic, text in verdict.lines]
    outcome = "kept every promise" if verdict.passed else f"broke: {verdict.invariant}"
    return [*lines, f"{outcome}, digest {verdict.digest}"]


def _other_hash_seed() -> str:
    mine, other = os.environ.get("PYTHONHASHSEED"), _HASH_SEEDS
    return other[1] if mine == other[0] else other[0]


def main(arguments: Sequence[str]) -> None:
    seed, seconds, layer = arguments
    verdict = simulate(int(seed), seconds=float(seconds), layer=Layer(layer), lines_max=LINES_MAX)
    json.dump(_account(verdict), sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1:])
