"""Waiting without time passing, where there is a node with threads beside the loop.

`autojump_clock` is for tests whose every wait is for the clock. A node's threads, which open, sync
and close files, take real time: a clock that jumps meanwhile has the loop run through minutes of
timers, and keeps the threads from the interpreter, for as long as the disk needs.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager

from trio.testing import MockClock


@contextmanager
def jumping(clock: MockClock) -> Iterator[None]:
    """In this block, which waits for no thread, time jumps to when something is due."""
    clock.rate, clock.autojump_threshold = 0.0, 0
    try:
        yield
    finally:
        clock.rate, clock.autojump_threshold = 1.0, math.inf
