"""Whether to go on looking at the sockets for a moment before the loop sleeps.

To sleep and be woken takes tens of microseconds, as long as a client needs that sends its next
requests for the answers that it gets; and who has slept finds the processor's caches cold. So where
requests have come in such short intervals the loop looks again and again for about as long. Where
they have not, nothing is to be had; and where broker and client share a core, looking is what keeps
the client from sending. So each time that it was in vain makes the next one rarer, and after a
pause it takes many short intervals until it begins: what one request sets off among brokers comes
at short intervals, too (`docs/decisions/0014-lingering.md`).
"""

from typing import Final

LINGER_SECONDS: Final = 100e-6
SHORT_SECONDS: Final = 200e-6
"""A wait of the sleeping loop that lingering would have spared: being woken is part of it."""
PAUSE_SECONDS: Final = 1e-3
"""After a wait as long as this there is no load any more."""
WAITS_TO_BEGIN: Final = 16
RARITY_MAX: Final = 64


class Lingering:
    """How it has gone so far. It has no clock, but is told what the time is, in seconds."""

    __slots__ = ("_rarity", "_since", "_waits_left")

    def __init__(self) -> None:
        self._since = float("-inf")
        self._rarity = 1
        self._waits_left = WAITS_TO_BEGIN  # so many short ones, before it is tried

    def begin(self, now: float) -> float:
        """There is no more to be done; until when to look for some. `now` means not at all."""
        self._since = now
        if self._waits_left:
            return now
        # In vain, unless it turns out otherwise.
        self._waits_left = self._rarity
        self._rarity = min(2 * self._rarity, RARITY_MAX)
        return now + LINGER_SECONDS

    def paid(self) -> None:
        """There was something before the time was over."""
        self._waits_left, self._rarity = 0, 1

    def woken(self, now: float) -> None:
        """There is something, and the loop has slept until now."""
        seconds = now - self._since
        if seconds >= PAUSE_SECONDS:
            self._waits_left = max(self._waits_left, WAITS_TO_BEGIN)
        elif self._waits_left and seconds < SHORT_SECONDS:
            self._waits_left -= 1
