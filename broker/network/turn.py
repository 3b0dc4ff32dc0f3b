"""One turn of the broker's loop: work that is done together, and what is done once at its end.

The reactor serves many sockets in a turn. Telling the disk, waking parked fetches and writing to
sockets pay for a system call or a search each, so they are put off to the end of the turn: what
ten requests caused is then done once. Who asked comes first: parked fetches are looked at when what
the turn has to say is said.

What other threads have to tell is heard at the beginning of a turn, whichever comes first: a loop
with much to do would else get to it late.
"""

import logging
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import trio

from tidemark.broker.network.odd_events import OddEvents

Callback = Callable[[], None]

_ROUNDS_MAX: Final = 10_000
"""Whoever puts itself off again and again would have the loop for ever."""
_ENDLESS: Final = "a turn comes to no end, and is interrupted for others (a bug): %s"

logger = logging.getLogger(__name__)


class Turn:
    """Runs callbacks in turns. Everything is on the loop's thread; callbacks must not raise."""

    __slots__ = ("_after", "_last", "_odd_events", "_open", "_released", "_told", "_wake")

    def __init__(self) -> None:
        self._odd_events = OddEvents(logger)
        self._open = False
        self._after: list[Callback] = []
        self._last: list[Callback] = []
        self._told: deque[Callback] = deque()
        self._wake: Callback | None = None
        self._released: trio.Event | None = None

    @property
    def is_open(self) -> bool:
        return self._open

    @property
    def is_behind(self) -> bool:
        """Whether something is put off to the end of this turn or, where this was one without an
        end, to that of the next, or was told meanwhile: the next one had better come soon."""
        return bool(self._after or self._last or self._told)

    def run(self, callback: Callback) -> None:
        """Run `callback` as a turn, or as a part of the one that is running."""
        if self._open:
            callback()
            return
        self._open = True
        try:
            while self._told:
                self._told.popleft()()
            callback()
        finally:
            self._finish()

    def tell(self, callback: Callback) -> bool:
        """From any thread: run `callback` at the beginning of the next turn, behind what was told
        before. Whether there is one soon; if not, whoever tells sees to it: `hear`."""
        self._told.append(callback)
        wake = self._wake
        if wake is not None:
            wake()
        return wake is not None

    @contextmanager
    def woken_by(self, wake: Callback) -> Iterator[None]:
        """In this block `wake`, which any thread may call, has a turn begin soon."""
        self._wake = wake
        try:
            yield
        finally:
            # In this order: what is told from now on is for others to have heard.
            self._wake = None
            self.hear()

    def hear(self) -> None:
        """Have what was told run by now."""
        if self._told:
            self.run(_do_nothing)

    def after(self, callback: Callback) -> None:
        """Run `callback` at the end of this turn; at once where there is none."""
        if self._open or self._released is not None:
            self._after.append(callback)
        else:
            self.run(callback)

    def last(self, callback: Callback) -> None:
        """Run `callback` once nothing is left of what is put off to the end of this turn."""
        self._last.append(callback)
        if not self._open and self._released is None:
            self.run(_do_nothing)

    # Standing still, for tests

    @property
    def is_held(self) -> bool:
        return self._released is not None

    def hold(self) -> None:
        """Stand still, as a process that is stopped: no socket is served and no timer fires, and
        what is put off to the end of a turn, all that is said and sent, waits."""
        if self._released is None:
            self._released = trio.Event()

    def release(self) -> None:
        """Go on, late; first with what was put off."""
        released, self._released = self._released, None
        if released is not None:
            released.set()
            self.run(_do_nothing)

    async def wait_released(self) -> None:
        """Until it is not held."""
        while self._released is not None:
            await self._released.wait()

    def _finish(self) -> None:
        if self._released is not None:
            self._open = False
            return
        try:
            # What is put off while finishing is done in the next round, until nothing is left.
            for _ in range(_ROUNDS_MAX):
                if not (self._after or self._last):
                    return
                if self._after:
                    callbacks, self._after = self._after, []
                else:
                    callbacks, self._last = self._last, []
                for callback in callbacks:
                    callback()
            if self._after or self._last:
                self._odd_events.warn(
                    "turns without an end", _ENDLESS, (self._after or self._last)[0]
                )
        finally:
            self._open = False


def _do_nothing() -> None:
    """A turn that only ends."""
