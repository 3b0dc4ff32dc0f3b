"""A state machine's next deadline, in milliseconds of the loop's clock, as a timer."""

from __future__ import annotations

from collections.abc import Callable

from tidemark.broker.network.timers import Timer, Timers
from tidemark.broker.node import Clock
from tidemark.partitions.state_machines.instant import Instant


class Alarm:
    """Rings once, and is set anew after that. It may ring early."""

    def __init__(self, timers: Timers, ring: Callable[[], None]) -> None:
        self._timers = timers
        self._ring = ring
        self._timer: Timer | None = None

    def set(self, deadline_ms: int | None) -> None:
        """Have it ring then, or before; `None`: not at all."""
        if deadline_ms is None:
            self._cancel()
            return
        # A millisecond late, so that rounding never makes it early.
        deadline_seconds = (deadline_ms + 1) / 1000
        if self._timer is None or deadline_seconds < self._timer.deadline_seconds:
            self._cancel()
            self._timer = self._timers.at(deadline_seconds, self._go_off)

    def _cancel(self) -> None:
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()

    def _go_off(self) -> None:
        self._timer = None
        self._ring()


def instant(timers: Timers, clock: Clock) -> Instant:
    return Instant(ticks_ms=int(timers.now() * 1000), wall_ms=clock.now_ms())
