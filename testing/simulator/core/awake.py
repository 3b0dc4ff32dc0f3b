"""Time as a process lives it: none passes while it is paused."""

from __future__ import annotations

from tidemark.testing.simulator.events import EventQueue


class AwakeClock:
    """Of one process."""

    def __init__(self, queue: EventQueue) -> None:
        self._queue = queue
        self._slept_seconds = 0.0
        """In all pauses, to the end of the one that lasts."""
        self.paused_until = 0.0

    @property
    def is_awake(self) -> bool:
        return self._queue.now >= self.paused_until

    @property
    def seconds(self) -> float:
        """From some moment on."""
        return max(self._queue.now, self.paused_until) - self._slept_seconds

    def pause(self, seconds: float) -> None:
        """Until so many seconds from now; a pause that lasts longer goes on."""
        now = self._queue.now
        until = max(self.paused_until, now + seconds)
        self._slept_seconds += until - max(self.paused_until, now)
        self.paused_until = until

    def wake(self) -> None:
        """End a pause early."""
        now = self._queue.now
        self._slept_seconds -= max(0.0, self.paused_until - now)
        self.paused_until = min(self.paused_until, now)
