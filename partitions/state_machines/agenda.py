"""When each of many things needs looking at, by name: groups, transactional ids.

A deadline that moves back leaves its entry where it is; when that comes up, the thing is looked at
and entered anew. So moving a deadline back, which every heartbeat and every transaction does, costs
nothing here, and a name that is busy for hours does not fill the heap.
"""

from heapq import heappop, heappush
from typing import Final

NEVER: Final = 2**63 - 1
"""A deadline that does not come."""


class Agenda:
    """One entry that counts for each name that has a deadline; all in the caller's ticks."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, str]] = []
        # The entry of each name that counts; others in the heap are left over.
        self._entered: dict[str, int] = {}

    @property
    def next_ms(self) -> int | None:
        """The first deadline, or a left-over entry before it."""
        return self._heap[0][0] if self._heap else None

    def note(self, name: str, deadline_ms: int) -> None:
        """Make sure that `name` comes up by then."""
        if deadline_ms < self._entered.get(name, NEVER):
            self._entered[name] = deadline_ms
            heappush(self._heap, (deadline_ms, name))

    def take_due(self, ticks_ms: int) -> list[str]:
        """The names that come up, perhaps early; each has no entry then until it is noted again."""
        due = []
        while self._heap and self._heap[0][0] <= ticks_ms:
            deadline_ms, name = heappop(self._heap)
            if self._entered.get(name) == deadline_ms:
                del self._entered[name]
                due.append(name)
        return due
