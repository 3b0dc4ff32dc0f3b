"""When which group needs looking at: one entry for each group that has a deadline at all.

A heartbeat only moves its member's deadline back, so the entry stays where it is; when it comes up,
the group is looked at and entered anew. So a heartbeat costs nothing here.
"""

from heapq import heappop, heappush

from tidemark.partitions.state_machines.groups.group import NEVER
from tidemark.partitions.state_machines.groups.kinds import AnyGroup


class Agenda:
    def __init__(self) -> None:
        self._heap: list[tuple[int, str]] = []
        # The entry of each group that counts; others in the heap are left over.
        self._entered: dict[str, int] = {}

    @property
    def next_ms(self) -> int | None:
        """The first deadline, or a left-over entry before it."""
        return self._heap[0][0] if self._heap else None

    def note(self, group: AnyGroup) -> None:
        """Make sure that the group comes up by its `wake_ms`."""
        if group.wake_ms < self._entered.get(group.id, NEVER):
            self._entered[group.id] = group.wake_ms
            heappush(self._heap, (group.wake_ms, group.id))

    def take_due(self, ticks_ms: int) -> list[str]:
        """The ids of the groups that are due; each has no entry then until it is noted again."""
        due = []
        while self._heap and self._heap[0][0] <= ticks_ms:
            deadline_ms, group_id = heappop(self._heap)
            if self._entered.get(group_id) == deadline_ms:
                del self._entered[group_id]
                due.append(group_id)
        return due
