"""Many deadlines, one sleeping task.

A parked fetch or a produce request that waits for its commit has a deadline, and nearly always
is answered long before it. So setting and cancelling a timer must be cheap: a heap of small
objects, cancelled by a mark, and one trio task whose cancel scope sleeps until the first.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush

import trio

from tidemark.broker.network.turn import Turn

Callback = Callable[[], None]

# Below this many cancelled timers the heap is not worth rebuilding.
_CANCELLED_MAX = 1_000


class Timer:
    """One deadline. `cancel` may be called at any time, any number of times."""

    __slots__ = ("_timers", "callback", "deadline_seconds")

    def __init__(self, timers: Timers, deadline_seconds: float, callback: Callback) -> None:
        self._timers = timers
        self.deadline_seconds = deadline_seconds
        self.callback: Callback | None = callback

    def __lt__(self, other: Timer) -> bool:
        return self.deadline_seconds < other.deadline_seconds

    def cancel(self) -> None:
        if self.callback is not None:
            self.callback = None
            self._timers._cancelled()


class Timers:
    """Calls functions at their time, on trio's clock. `run` is the task that does it.

    Callbacks run one after another inside a turn, must not block, and must not raise.
    """

    def __init__(self, turn: Turn | None = None) -> None:
        self._turn = turn or Turn()
        self._heap: list[Timer] = []
        self._cancelled_count = 0
        self._sleep: trio.CancelScope | None = None

    def __len__(self) -> int:
        """How many timers are set and not cancelled."""
        return len(self._heap) - self._cancelled_count

    @staticmethod
    def now() -> float:
        """Seconds on the clock that deadlines are stated in."""
        return trio.current_time()

    def at(self, deadline_seconds: float, callback: Callback) -> Timer:
        timer = Timer(self, deadline_seconds, callback)
        heappush(self._heap, timer)
        if self._sleep is not None and self._heap[0] is timer:
            self._sleep.deadline = deadline_seconds
        return timer

    def move(self, timer: Timer, deadline_seconds: float) -> Timer:
        """In its place, one for another time; then nobody is woken at the time of the old one.

        That takes longer than `cancel`, and pays where little else wakes the loop.
        """
        callback = timer.callback
        assert callback is not None, "it has gone off, or was cancelled"
        timer.cancel()
        moved = self.at(deadline_seconds, callback)
        if self._sleep is not None:
            self._sleep.deadline = self._next_deadline()
        return moved

    def after(self, delay_seconds: float, callback: Callback) -> Timer:
        return self.at(trio.current_time() + delay_seconds, callback)

    def _cancelled(self) -> None:
        self._cancelled_count += 1
        if self._cancelled_count > _CANCELLED_MAX and self._cancelled_count > len(self._heap) // 2:
            self._heap = [timer for timer in self._heap if timer.callback is not None]
            heapify(self._heap)
            self._cancelled_count = 0

    async def run(self) -> None:
        """Sleep until the next deadline, call what is due, for ever."""
        while True:
            with trio.CancelScope() as self._sleep:
                self._sleep.deadline = self._next_deadline()
                await trio.sleep_forever()
            self._sleep = None
            if self._turn.is_held:
                await self._turn.wait_released()
            self._turn.run(self._call_due)

    def _next_deadline(self) -> float:
        while self._heap and self._heap[0].callback is None:
            heappop(self._heap)
            self._cancelled_count -= 1
        return self._heap[0].deadline_seconds if self._heap else float("inf")

    def _call_due(self) -> None:
        now = trio.current_time()
        while self._heap and self._heap[0].deadline_seconds <= now:
            timer = heappop(self._heap)
            callback, timer.callback = timer.callback, None
            if callback is None:
                self._cancelled_count -= 1
            else:
                callback()
