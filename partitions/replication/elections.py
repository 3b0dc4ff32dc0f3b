"""Groups without a leader, waiting for their turn to campaign.

When a broker dies, a thousand groups lose their leader in one moment. Each waits a little, by
chance and by how many living voters come before this one, so that mostly one voter stands. The
cluster's metadata goes first, then consumers' offsets, then the rest; and only so many campaign at
once, so that elections do not starve each other of the disk. So the first voter may be at work for
longer than the next one waits; as long as groups are getting leaders, that one waits on.

A voter that is asked by one that goes before it, or that stands already, and can vote for it, waits
for what becomes of that: else both stand, and depose each other. And where confirmations take long,
voters stand further apart; but no further than a candidate waits before it stands again. Who was
stopped for an hour and goes on has just taken an hour to confirm something, and a voter behind it
would wait for two, whatever becomes of it meanwhile.

No campaign is given up, and no voter stands in place of the one before it, until the voters have
read what was sent to them when it began: on a machine that has no time for its brokers, all that
is late is late together, and who asks anew makes it later still.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from heapq import heapify, heappop, heappush
from random import Random
from typing import Final

from tidemark.partitions.replication.timing import Timing
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.values import dataclass

_NEVER: Final = float("inf")
_STALE_KEPT: Final = 64
_DOUBLED_MAX: Final = 4
_YIELDED_MAX: Final = 8

WasRead = Callable[[PartitionKey, float], bool]
"""Whether a group's voters have read what was sent to them until then, so that an answer, if
there is one, is here."""


def _at_once(key: PartitionKey, since: float) -> bool:
    return True


class Priority(IntEnum):
    """Which groups are to have a leader first."""

    CLUSTER = 0
    OFFSETS = 1
    REST = 2


@dataclass(slots=True)
class _Waiting:
    due: float
    priority: Priority
    rank: int
    """How many living voters are to go first."""
    number: int
    """Tells this entry's place in the heap from an earlier one's."""
    is_first: bool = False
    """Whether it never had a leader: then there is no other candidate to be kept apart from."""
    attempts: int = 0
    """How often this broker has campaigned for it in vain."""
    yielded: int = 0
    """How often its turn was left to the voters before this one."""
    since: float = 0.0
    """When it began to wait, or to campaign."""


class ElectionQueue:
    """The groups that this broker is to campaign for, and those for which it does.

    `rng` decides the jitter. A group is here from the moment it has no leader until it has one.
    """

    def __init__(self, timing: Timing, rng: Random) -> None:
        self._timing = timing
        self._rng = rng
        self._waiting: dict[PartitionKey, _Waiting] = {}
        self._heap: list[tuple[float, int, PartitionKey]] = []
        self._due: list[tuple[Priority, float, int, PartitionKey]] = []
        self._campaigning: dict[PartitionKey, _Waiting] = {}
        # How often it was in vain until there was a leader, and when that was, the oldest first.
        self._calmed: dict[PartitionKey, tuple[int, float]] = {}
        self._numbers = 0
        # When a group of each priority that waited here was last led by another broker.
        self._served_at: dict[Priority, float] = {}
        self.slowness_seconds = 0.0
        """By how much longer than usual the others take to confirm what they are sent."""
        # When to look again at campaigns that have lasted for long and may yet be answered.
        self._look_again = 0.0

    def __len__(self) -> int:
        return len(self._waiting) + len(self._campaigning)

    def __contains__(self, key: PartitionKey) -> bool:
        return key in self._waiting or key in self._campaigning

    def add(
        self,
        key: PartitionKey,
        now: float,
        *,
        priority: Priority,
        rank: int,
        is_first: bool = False,
        after_seconds: float = 0.0,
    ) -> None:
        """The group has no leader, or never had one. One that is here already keeps its turn.
        `after_seconds`: others have so long to do without it.

        Where the last leader did not last, candidates stay as far apart as they were: else two
        that depose each other would go on for ever.
        """
        if key in self:
            return
        attempts, since = self._calmed.pop(key, (0, now))
        if now - since > self._timing.failure_timeout_seconds:
            attempts = 0
        self._wait(
            key, _Waiting(now + after_seconds, priority, rank, 0, is_first, attempts, since=now)
        )

    def remove(self, key: PartitionKey, now: float) -> None:
        """The group has a leader, or is no concern of this broker any more."""
        waiting = self._waiting.pop(key, None)
        if waiting is not None:
            self._served_at[waiting.priority] = now
        else:
            waiting = self._campaigning.pop(key, None)
        if waiting is not None and waiting.attempts:
            self._calmed[key] = waiting.attempts, now
            self._forget_calmed(now - self._timing.failure_timeout_seconds)
        if waiting is not None and not len(self):
            # Nobody waits: what is left is of no use, and as large as when thousands did.
            self._waiting, self._campaigning = {}, {}
            self._heap, self._due = [], []

    def _forget_calmed(self, before: float) -> None:
        for key, (_, since) in list(self._calmed.items()):
            if since >= before:
                break
            del self._calmed[key]

    def hurry(self, now: float) -> None:
        """Another voter lives: what was in vain may not be any more."""
        for key, waiting in list(self._waiting.items()):
            if waiting.attempts:
                waiting.attempts, waiting.due = 0, now
                self._wait(key, waiting)

    def leave_to_another(self, key: PartitionKey, now: float) -> bool:
        """Another voter stands for the group: have it wait for what becomes of that; whether it
        does. Not for ever: who asks again and again in vain is not waited for."""
        waiting = self._waiting.get(key) or self._campaigning.get(key)
        if waiting is None or waiting.yielded >= _YIELDED_MAX:
            return False
        self._campaigning.pop(key, None)
        waiting.yielded += 1
        waiting.since = now
        waiting.due = now + self._timing.campaign_timeout_seconds
        self._wait(key, waiting)
        return True

    def take_due(self, now: float, was_read: WasRead = _at_once) -> list[PartitionKey]:
        """The groups to campaign for now; each comes again unless it is removed before."""
        self._retry_stalled(now, was_read)
        while self._heap and self._heap[0][0] <= now:
            due, number, key = heappop(self._heap)
            waiting = self._waiting.get(key)
            if waiting is None or waiting.number != number:
                continue
            if self._others_are_at_work(waiting, now):
                waiting.yielded += 1
                waiting.due = now
                self._wait(key, waiting)
            else:
                heappush(self._due, (waiting.priority, due, number, key))
        taken = []
        while self._due and len(self._campaigning) < self._timing.campaigns_at_once:
            _, _, number, key = heappop(self._due)
            waiting = self._waiting.get(key)
            if waiting is None or waiting.number != number:
                continue
            if (waiting.rank or waiting.yielded) and not was_read(key, waiting.since):
                waiting.due = now + self._timing.heartbeat_seconds
                self._push(key, waiting)
            else:
                del self._waiting[key]
                waiting.due = now + self._timing.campaign_timeout_seconds
                waiting.since = now
                self._campaigning[key] = waiting
                taken.append(key)
        return taken

    def _others_are_at_work(self, waiting: _Waiting, now: float) -> bool:
        """Whether the voters before this one will come to this group, too, as far as it seems."""
        return (
            waiting.rank > 0
            and not waiting.attempts
            and waiting.yielded < _YIELDED_MAX
            and now - self._served_at.get(waiting.priority, -_NEVER)
            < self._timing.election_rank_seconds
        )

    def next_deadline(self) -> float:
        """When `take_due` may have something to do."""
        if self._due and len(self._campaigning) < self._timing.campaigns_at_once:
            return 0.0
        first = self._heap[0][0] if self._heap else _NEVER
        if self._campaigning:
            # In the order in which they began, and all wait equally long.
            first_end = next(iter(self._campaigning.values())).due
            first = min(first, max(first_end, self._look_again))
        return first

    def _retry_stalled(self, now: float, was_read: WasRead) -> None:
        if now < self._look_again:
            return
        stalled = []
        for key, waiting in self._campaigning.items():
            if waiting.due > now:
                break
            if was_read(key, waiting.since):
                stalled.append((key, waiting))
            else:
                self._look_again = now + self._timing.heartbeat_seconds
        for key, waiting in stalled:
            del self._campaigning[key]
            waiting.due = now + self._pause_seconds(waiting.attempts)
            waiting.attempts += 1
            waiting.since = now
            self._wait(key, waiting)

    def _pause_seconds(self, attempts: int) -> float:
        """How much longer than a campaign to wait for the next one.

        All of it is chance: candidates that have met once would meet again.
        """
        timing = self._timing
        wait_seconds = timing.campaign_timeout_seconds * (2 << min(attempts, _DOUBLED_MAX))
        wait_seconds = (
            min(wait_seconds, timing.campaign_wait_max_seconds) - timing.campaign_timeout_seconds
        )
        return max(0.0, wait_seconds) * self._rng.random()

    def _wait(self, key: PartitionKey, waiting: _Waiting) -> None:
        """Once it is due, and what chance and the voters before this one add to that has passed."""
        timing = self._timing
        patience = 1 << min(waiting.attempts, _DOUBLED_MAX)
        is_undisputed = waiting.is_first and not waiting.rank and not waiting.attempts
        apart_seconds = (
            0.0 if is_undisputed else self._rng.random() * timing.election_jitter_seconds
        )
        slow_seconds = min(2 * self.slowness_seconds, timing.campaign_wait_max_seconds)
        rank_seconds = timing.election_rank_seconds + slow_seconds
        waiting.due += patience * (apart_seconds + waiting.rank * rank_seconds)
        self._push(key, waiting)

    def _push(self, key: PartitionKey, waiting: _Waiting) -> None:
        self._numbers += 1
        waiting.number = self._numbers
        self._waiting[key] = waiting
        if len(self._heap) > 2 * len(self._waiting) + _STALE_KEPT:
            self._heap = [(each.due, each.number, key) for key, each in self._waiting.items()]
            heapify(self._heap)
            self._due.clear()
        else:
            heappush(self._heap, (waiting.due, waiting.number, key))
