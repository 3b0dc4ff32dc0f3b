"""Coverage marks: which rare branches were taken, counted while somebody collects.

`mark("truncated")` stands in the branch; a test or the simulator collects and asks whether it was
reached. A green run that never came there has proven nothing about it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

# The one module global: passing a counter into every branch would cost more than it shows.
_counts: Counter[str] | None = None


def mark(name: str) -> None:
    """This branch was taken."""
    if _counts is not None:
        _counts[name] += 1


@contextmanager
def collecting() -> Iterator[Counter[str]]:
    """Counts the marks that are reached in this block; blocks nest, the inner one counts."""
    global _counts
    outer, counts = _counts, Counter[str]()
    _counts = counts
    try:
        yield counts
    finally:
        _counts = outer
