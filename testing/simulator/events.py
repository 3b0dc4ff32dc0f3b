"""Virtual time: what happens next, and when."""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import TypeAlias

from tidemark.testing.checkers.violation import bounded

Action: TypeAlias = Callable[[], None]


class EventQueue:
    """Actions in the order of their times; of one time, in the order in which they were put in."""

    def __init__(self) -> None:
        self.now = 0.0
        """Seconds since the beginning."""
        self.taken = 0
        """How many actions were run."""
        self.taken_max = 0
        """Run no more than so many; 0 is no limit."""
        self._heap: list[tuple[float, int, Action]] = []
        self._put = 0

    def __len__(self) -> int:
        return len(self._heap)

    def at(self, time: float, action: Action) -> None:
        """Run `action` at that time, or now if it has passed."""
        self._put += 1
        heappush(self._heap, (max(time, self.now), self._put, action))

    def after(self, seconds: float, action: Action) -> None:
        self.at(self.now + seconds, action)

    def step(self) -> bool:
        """Run the next action; false if there is none."""
        if not self._heap:
            return False
        self.now, _, action = heappop(self._heap)
        self.taken += 1
        if self.taken_max:
            bounded(self.taken, self.taken_max, "events", f"{self.now:.1f} s")
        action()
        return True

    def run_until(self, time: float) -> None:
        """Run all that is due up to and at that time."""
        while self._heap and self._heap[0][0] <= time:
            self.step()
        self.now = max(self.now, time)
