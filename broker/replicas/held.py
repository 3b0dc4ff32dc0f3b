"""Produce requests for a partition whose lead is about to go elsewhere: held, and not refused.

A held request stays where it was received, in its connection's buffer, and nothing has been done
about it yet. Its connection is not read any further: what the client sends next waits behind it, in
order, first in the buffer and then in the sockets of both sides. So holding takes no memory beyond
what connections may have anyway (`queued.max.request.bytes`). A client whose connection breaks
takes its request with it; one that has said all and hangs up does not.

When writes flow again, the request is taken as if it had just come: appended if this broker leads
still, else answered with who does. The same happens after `leader.move.pause.max.ms`, whatever has
become of the lead by then.
"""

from __future__ import annotations

from typing import Final, Protocol

import trio

from tidemark.broker.metrics.move_counts import MoveMetrics
from tidemark.broker.network.timers import Timer, Timers


class Waiter(Protocol):
    """A connection with a held request."""

    def go_on(self, *, may_be_held: bool) -> None:
        """Take the request again; without `may_be_held` it has to be answered now."""
        ...


class HeldTask:
    """A task that waits in a line as a connection does."""

    def __init__(self) -> None:
        self._over = trio.Event()

    @property
    def is_over(self) -> bool:
        """Whether it was told to go on; then it is not in the line any more."""
        return self._over.is_set()

    def go_on(self, *, may_be_held: bool) -> None:
        del may_be_held  # What it does next finds out by itself.
        self._over.set()

    async def wait(self) -> None:
        await self._over.wait()


_NOBODY: Final[dict[Waiter, int]] = {}
"""Shared by thousands of partitions at which nothing is held; nobody is ever put in."""


class HeldRequests:
    """What all lines of a broker share, and how much is held in all of them."""

    def __init__(self, timers: Timers, seconds_max: float, metrics: MoveMetrics) -> None:
        self.timers = timers
        self.seconds_max = seconds_max
        self.metrics = metrics


class Line:
    """The requests that are held at one partition, in the order of their coming."""

    __slots__ = ("_held", "_timer", "waiting")

    def __init__(self, held: HeldRequests) -> None:
        self._held = held
        self.waiting = _NOBODY
        """To look at: where batches are appended, asking for the length takes longer."""
        self._timer: Timer | None = None

    def __len__(self) -> int:
        return len(self.waiting)

    def join(self, waiter: Waiter, size_bytes: int) -> None:
        """Be told to go on, once. The first in the line decides for how long it may last."""
        assert waiter not in self.waiting, "a connection has one request that is held"
        if self.waiting is _NOBODY:
            self.waiting = {}
        self.waiting[waiter] = size_bytes
        self._held.metrics.held_requests += 1
        self._held.metrics.held_bytes += size_bytes
        if self._timer is None:
            self._timer = self._held.timers.after(self._held.seconds_max, self._give_up)

    def leave(self, waiter: Waiter) -> None:
        """The connection has gone."""
        self._forget(waiter)
        if not self.waiting:
            self._stop_timer()

    def release(self) -> None:
        """Writes flow again, or another broker leads."""
        self._let_all_go(may_be_held=True)

    def _give_up(self) -> None:
        self._timer = None
        self._let_all_go(may_be_held=False)

    def _let_all_go(self, *, may_be_held: bool) -> None:
        self._stop_timer()
        # All leave before the first goes on: what is held anew, by another pause, is another line.
        waiting = list(self.waiting)
        for waiter in waiting:
            self._forget(waiter)
        for waiter in waiting:
            waiter.go_on(may_be_held=may_be_held)

    def _forget(self, waiter: Waiter) -> None:
        self._held.metrics.held_requests -= 1
        self._held.metrics.held_bytes -= self.waiting.pop(waiter)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
