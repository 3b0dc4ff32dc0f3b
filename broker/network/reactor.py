"""One task that serves every client socket.

A task per connection costs 2.6 times as much per small request, so here one trio task owns a
private epoll set: it waits until any of its sockets is ready and works through all that are, with
plain calls, before it yields to the other tasks.
"""

from __future__ import annotations

import select
from collections.abc import Callable
from time import perf_counter
from typing import Final, TypeAlias

import trio

from tidemark.broker.network.bell import Bell
from tidemark.broker.network.lingering import Lingering
from tidemark.broker.network.turn import Turn

READABLE: Final = select.EPOLLIN
WRITABLE: Final = select.EPOLLOUT

# At the sockets, in one turn.
_LOOKS: Final = 2
# How many turns, of so many looks each, there are before other tasks (timers, the HTTP side,
# handlers that wait) get theirs: yielding costs a few microseconds, never yielding costs them
# everything.
_TURNS_MAX: Final = 4
# And for how long, however few turns: a request that names tens of thousands of things takes as
# long as thousands of others do, and meanwhile the other brokers hear nothing from here.
_SECONDS_MAX: Final = 0.1
_UNTIMED: Final = 4
"""So few sockets are served without a look at the clock."""
_EVENTS_MAX: Final = 256
_ONE_SECONDS: Final = 0.01
"""Who is ready and was not within this time is another one."""

OnReady: TypeAlias = Callable[[int], None]
"""Called with the epoll events. Must not raise, nor wait; a late event for a socket that has no
more to give has to be harmless."""


class Reactor:
    """The epoll set. `run` is the task; everything else is called on its thread."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._epoll = select.epoll()
        self._bell = Bell(self._epoll)
        self._on_ready: dict[int, OnReady] = {}
        self._served = False
        self._until = 0.0  # when other tasks are to have their turn
        self._is_late = False
        # Who was ready when time was up, and was not served: descriptors, and their places in line.
        self._left: dict[int, int] = {}
        self._lingering = Lingering()
        self._latest = -1  # who was served last, of all that were ready
        self._looked_at = self._others_at = 0.0  # the last look, and the last at somebody else
        self.is_more_on_its_way: Callable[[], bool] = lambda: False
        """Whether something is awaited that does not come through the sockets, as what a thread
        does: who lingered for these would be late for that."""
        self.is_much: Callable[[], bool] = lambda: False
        """Whether this turn has brought work for others that had better begin at once, as where
        much is to be synced: then it is over after one look."""

    def close(self) -> None:
        """Nothing is served any more; `run` has ended."""
        self._epoll.close()
        self._bell.close()

    def add(self, descriptor: int, events: int, on_ready: OnReady) -> None:
        self._epoll.register(descriptor, events)
        self._on_ready[descriptor] = on_ready

    def change(self, descriptor: int, events: int) -> None:
        self._epoll.modify(descriptor, events)

    def remove(self, descriptor: int) -> None:
        """Before the descriptor is closed."""
        del self._on_ready[descriptor]
        self._epoll.unregister(descriptor)

    def serves_one(self) -> bool:
        """Whether who is being served is the only one, and has been for a moment."""
        return self._looked_at - self._others_at > _ONE_SECONDS

    async def run(self) -> None:
        """Serve for ever."""
        with self._turn.woken_by(self._bell.ring):
            while True:
                await self._sleep()
                self._looked_at = now = perf_counter()
                self._lingering.woken(now)
                self._until, self._is_late = now + _SECONDS_MAX, False
                if self._turn.is_held:
                    await self._turn.wait_released()
                for _ in range(_TURNS_MAX):
                    self._turn.run(self._serve)
                    if self._is_late or (not self._served and not self._linger()):
                        break

    async def _sleep(self) -> None:
        """Until somebody is ready, or something was told; at least for as long as other tasks
        have their turn."""
        self._bell.is_asleep = True
        try:
            if self._turn.is_behind:
                await trio.lowlevel.checkpoint()
            else:
                await trio.lowlevel.wait_readable(self._epoll.fileno())
        finally:
            self._bell.is_asleep = False

    def _serve(self) -> None:
        """Serve who is ready, and then who has become ready meanwhile: requests of a burst that
        come a little apart are made durable together, and answered in one send."""
        for _ in range(_LOOKS):
            events = self._epoll.poll(0, _EVENTS_MAX)
            self._served = bool(events)
            if not events:
                break
            if len(events) > _UNTIMED:
                self._serve_many(events)
            else:
                for descriptor, mask in events:
                    # An event before this one may have closed the connection; and the bell, which
                    # is nobody, has rung for what was heard when the turn began.
                    on_ready = self._on_ready.get(descriptor)
                    if on_ready is None:
                        continue
                    if descriptor != self._latest:
                        self._latest, self._others_at = descriptor, self._looked_at
                    on_ready(mask)
            self._looked_at = perf_counter()
            if self._looked_at >= self._until:
                self._is_late = True
                break
            if self.is_much():
                break

    def _serve_many(self, events: list[tuple[int, int]]) -> None:
        """As long as there is time: who is left is ready still, and comes first the next time."""
        self._latest, self._others_at = -1, self._looked_at
        places, nowhere = self._left, len(self._left)
        if places:
            events.sort(key=lambda event: places.get(event[0], nowhere))
        self._left = {}
        rest = iter(events)
        for descriptor, mask in rest:
            on_ready = self._on_ready.get(descriptor)
            if on_ready is not None:
                on_ready(mask)
            if perf_counter() >= self._until:
                self._left = {descriptor: place for place, (descriptor, _) in enumerate(rest)}
                break

    def _linger(self) -> bool:
        """Look for a moment whether somebody becomes ready, where that is likely; whether anybody
        has."""
        lingering, poll = self._lingering, self._epoll.poll
        now = perf_counter()
        until = now if self.is_more_on_its_way() else lingering.begin(now)
        while now < until:
            if poll(0, 1):
                lingering.paid()
                return True
            now = perf_counter()
        return False
