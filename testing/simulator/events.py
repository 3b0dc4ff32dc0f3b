"""Virtual time: what happens next, and when."""

from collections.abc import Callable
from heapq import heappop, heappush
from math import inf
from typing import TypeVarTuple, Unpack

from tidemark.testing.checkers.violation import bounded

_Args = TypeVarTuple("_Args")


class EventQueue:
    """Actions in the order of their times; of one time, in the order in which they were put in."""

    def __init__(self) -> None:
        self.now = 0.0
        """Seconds since the beginning."""
        self.taken = 0
        """How many actions were run."""
        self.taken_max = 0
        """Run no more than so many; 0 is no limit."""
        # An action lies here with its arguments: most would be closures, made for one call.
        self._heap: list[tuple[float, int, Callable[..., None], tuple[object, ...]]] = []
        self._put = 0

    def __len__(self) -> int:
        return len(self._heap)

    def at(self, time: float, action: Callable[[Unpack[_Args]], None], *args: *_Args) -> None:
        """Run `action` at that time, or now if it has passed."""
        self._put = put = self._put + 1
        now = self.now
        heappush(self._heap, (time if time > now else now, put, action, args))

    def after(self, seconds: float, action: Callable[[Unpack[_Args]], None], *args: *_Args) -> None:
        self._put = put = self._put + 1
        now = self.now
        heappush(self._heap, (now + seconds if seconds > 0 else now, put, action, args))

    def step(self) -> bool:
        """Run the next action; false if there is none."""
        if not self._heap:
            return False
        self.now, _, action, args = heappop(self._heap)
        self.taken += 1
        if self.taken > self.taken_max > 0:
            bounded(self.taken, self.taken_max, "events", f"{self.now:.1f} s")
        action(*args)
        return True

    def run_until(self, time: float) -> None:
        """Run all that is due up to and at that time."""
        heap, taken_max = self._heap, self.taken_max or inf
        while heap and heap[0][0] <= time:
            self.now, _, action, args = heappop(heap)
            self.taken = taken = self.taken + 1
            if taken > taken_max:
                bounded(taken, self.taken_max, "events", f"{self.now:.1f} s")
            action(*args)
        self.now = max(self.now, time)
