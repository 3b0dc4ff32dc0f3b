"""When the loop may sync the journal by itself, and not have the writer thread do it.

Handing a group to the thread and hearing of it takes two wakings, of 100 to 200 µs each; where the
disk takes less than that, a record that comes alone waits for nothing else. But a loop that syncs
serves nobody meanwhile. So it does it only where little is to be written, syncs are usually
quick, and it was free for several times as long as it will be held; and after one that was slow
the thread does it for many times as long as that one took. A disk that stalls for a second holds
the loop up once, and then for a minute not again; one that is a little slow now and then, as most
are, has the loop's syncs all the same.

Who is served alone has nobody beside it who would wait. There the loop syncs as often as it likes,
and more at once, as long as that takes no longer than a hand-over.

Pure: time, in seconds on any clock that does not go back, is an argument.
"""

from __future__ import annotations

import math
from typing import Final

BYTES_MAX: Final = 32 * 1024
"""So much at once, at most: more keeps the disk busy for longer than the last syncs tell."""
QUICK_SECONDS: Final = 0.001
"""Syncs that take longer than this are the thread's: a hand-over is little beside them."""
SLOW_SECONDS: Final = 0.005
"""One on the loop that took as long as this is the last for a while."""
FREE_SHARE: Final = 4
"""For so many times what a sync takes, the loop is free before one: it is held for a fifth of its
time at most, and what comes faster than that is better collected while the thread syncs."""
SLOW_FREE_SHARE: Final = 50
"""For so many times what a slow one took: all that are slow hold the loop for a fiftieth of its
time at most."""
PAUSE_SECONDS_MAX: Final = 120.0
ALONE_BYTES_MAX: Final = 128 * 1024
ALONE_SECONDS: Final = 0.0003
"""What a hand-over takes, with both wakings: for one client the loop syncs what takes no longer."""
_COUNTED_SECONDS_MAX: Final = 2 * QUICK_SECONDS
"""A sync counts for the average with so much at most: one of 30 ms says nothing of the next
twenty."""
_WEIGHT: Final = 1 / 8


class QuickSyncs:
    """What is known of the disk's pace."""

    def __init__(self) -> None:
        self._expected_seconds: float | None = None
        self._not_before = -math.inf
        self._slow_until = -math.inf

    def may_sync(self, now: float, size_bytes: int, *, is_alone: bool = False) -> bool:
        """Whether a group of this size may be written and synced on the loop; `is_alone`: of a
        client beside which nobody else is served."""
        expected = self._expected_seconds
        if expected is None or now < self._slow_until:
            return False
        if is_alone and expected <= ALONE_SECONDS:
            return size_bytes <= ALONE_BYTES_MAX
        return expected <= QUICK_SECONDS and size_bytes <= BYTES_MAX and now >= self._not_before

    def took(self, now: float, seconds: float, *, on_loop: bool) -> None:
        """A group was synced just now, by the loop or by the thread, in so many seconds."""
        counted = min(seconds, _COUNTED_SECONDS_MAX)
        if self._expected_seconds is None:
            self._expected_seconds = counted
        self._expected_seconds += (counted - self._expected_seconds) * _WEIGHT
        free = FREE_SHARE * max(seconds, self._expected_seconds)
        self._not_before = max(self._not_before, now + free)
        if on_loop and seconds >= SLOW_SECONDS:
            slow = min(SLOW_FREE_SHARE * seconds, PAUSE_SECONDS_MAX)
            self._slow_until = max(self._slow_until, now + slow)
