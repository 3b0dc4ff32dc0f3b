"""Rates of bytes, smoothed: what a balancer moves for should last longer than a burst."""

from __future__ import annotations

from math import exp
from typing import Final

SMOOTH_SECONDS: Final = 30.0
"""After so long a change of the rate shows at two thirds."""


class Smoothed:
    """The rate at which a counter grows, weighted exponentially by age.

    From the second sample on it is the mean of what was seen, not of that and of zeros from before.
    """

    __slots__ = ("_at", "_sum", "_total", "_weight")

    def __init__(self, total: int, now: float) -> None:
        self._total, self._at = total, now
        self._sum = self._weight = 0.0

    @property
    def per_second(self) -> float:
        return self._sum / self._weight if self._weight else 0.0

    def sample(self, total: int, now: float) -> None:
        """A counter that went backwards (a log's size does, where old segments go) stood still."""
        seconds = now - self._at
        if seconds <= 0:
            return
        keep = exp(-seconds / SMOOTH_SECONDS)
        self._sum = keep * self._sum + (1 - keep) * max(0, total - self._total) / seconds
        self._weight = keep * self._weight + (1 - keep)
        self._total, self._at = total, now
