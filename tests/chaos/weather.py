"""What becomes of single packets on a bad link: pure, so that it can be told from a seed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from random import Random


@dataclass(frozen=True, slots=True, kw_only=True)
class Weather:
    """Of a link's packets: how many are lost, doubled and held up, and how long all are under way.

    Who is held up is overtaken by those behind. All the others stay in order.
    """

    lost: float = 0.0
    doubled: float = 0.0
    held_up: float = 0.0
    held_up_seconds: float = 0.0
    """At most; how long exactly is drawn for each."""
    delay_seconds: float = 0.0

    def fate(self, rng: Random) -> list[float]:
        """After how many seconds a packet arrives, once for each time that it does."""
        if rng.random() < self.lost:
            return []
        copies = 2 if rng.random() < self.doubled else 1
        return [self.delay_seconds + self._held_up(rng) for _ in range(copies)]

    def _held_up(self, rng: Random) -> float:
        is_held_up = rng.random() < self.held_up
        return rng.uniform(0, self.held_up_seconds) if is_held_up else 0.0


def fate_in(weathers: Iterable[Weather], rng: Random) -> list[float]:
    """As `Weather.fate`, of a packet that meets one after the other."""
    arrivals = [0.0]
    for weather in weathers:
        arrivals = [at + more for at in arrivals for more in weather.fate(rng)]
    return arrivals
