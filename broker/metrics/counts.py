"""The two things that are counted while requests are served, made to cost next to nothing.

prometheus_client's own children take a lock for every step: on a busy machine 1.4 µs a counter and
2.5 µs a histogram, several times a request, where these take 0.2 and 0.5. Each has one writing
thread and no lock, and becomes Prometheus's family at a scrape (`collect_counts.py`). A scrape from
another thread may see a histogram between its two steps; the next one does not.
"""

from bisect import bisect_left
from typing import Final

LATENCY_BOUNDS_SECONDS: Final = (
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,
    1.0, 2.5, 5.0, 10.0,
)  # fmt: skip
"""Each is the upper, inclusive end of a histogram's bucket; above the last there is one more."""


class Count:
    """A number that only grows."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0

    def inc(self, amount: int = 1) -> None:
        self.value += amount


class Latency:
    """How often something took how long."""

    __slots__ = ("counts", "sum_seconds")

    def __init__(self) -> None:
        self.counts = [0] * (len(LATENCY_BOUNDS_SECONDS) + 1)
        self.sum_seconds = 0.0

    def observe(self, seconds: float, times: int = 1) -> None:
        self.counts[bisect_left(LATENCY_BOUNDS_SECONDS, seconds)] += times
        self.sum_seconds += seconds * times

    def buckets(self) -> list[tuple[str, float]]:
        """Prometheus's cumulative buckets, the last one `+Inf`."""
        total = 0
        buckets = []
        for bound, count in zip([*LATENCY_BOUNDS_SECONDS, "+Inf"], self.counts, strict=True):
            total += count
            buckets.append((str(bound), float(total)))
        return buckets
