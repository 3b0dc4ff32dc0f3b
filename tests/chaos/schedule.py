"""What goes wrong when: drawn from a seed, and nothing else.

A run is a sequence of rounds. In each some faults begin, last a while, and end; then the cluster
has a while to itself. A quarter of the rounds have no fault at all, half of the rest have several.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

_QUIET_PROBABILITY: Final = 0.25
_SEVERAL_PROBABILITY: Final = 0.5
_FAULT_SECONDS: Final = (2.0, 8.0)
_REST_SECONDS: Final = (2.0, 6.0)


@dataclass(frozen=True, slots=True)
class Round:
    """Faults that overlap, how long they last, and how long the cluster rests afterwards."""

    faults: tuple[str, ...]
    seconds: float
    rest_seconds: float


def rounds(seed: int, kinds: Sequence[str]) -> Iterator[Round]:
    """Rounds without end. The first ones have each kind once, alone, so that none is left out."""
    rng = Random(seed)
    first = rng.sample(kinds, len(kinds))
    for kind in first:
        yield _round(rng, (kind,))
    while True:
        if rng.random() < _QUIET_PROBABILITY:
            yield _round(rng, ())
            continue
        several = rng.random() < _SEVERAL_PROBABILITY
        count = rng.randint(2, min(3, len(kinds))) if several and len(kinds) > 1 else 1
        yield _round(rng, tuple(rng.sample(kinds, count)))


def _round(rng: Random, faults: tuple[str, ...]) -> Round:
    return Round(faults, rng.uniform(*_FAULT_SECONDS), rng.uniform(*_REST_SECONDS))
