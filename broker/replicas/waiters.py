"""Who waits for a partition: for its high watermark to pass an offset, or to move at all.

Who waits for a commit waits for the leader of one epoch, so an offset stands for a position here:
when that leadership ends, or the replica is closed, everything that waits is failed.

Thousands of partitions have nobody who waits. They share one object that says so, and get their own
with the first who does.
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Callable
from itertools import count
from typing import Final, Protocol

from tidemark.protocol.errors import RequestError
from tidemark.protocol.types import Offset

Committed = Callable[[RequestError | None], None]
"""Called once: with `None` when the offset is committed, with an error when it never will be."""


_SERIALS: Final = count()
"""Who waits for the same offset is called in the order of coming."""


class CommitWaiters:
    """Callbacks by the end offset they wait for, called in the order of their offsets."""

    __slots__ = ("waiting",)

    def __init__(self) -> None:
        self.waiting = deque[tuple[Offset, int, Committed]]()
        """To look at: where batches are appended, asking for the length takes longer."""

    def __len__(self) -> int:
        return len(self.waiting)

    def joined(self, end_offset: Offset, committed: Committed) -> CommitWaiters:
        """With one more: where nobody waited, another object."""
        if self is NO_COMMIT_WAITERS:
            return CommitWaiters().joined(end_offset, committed)
        entry = (end_offset, next(_SERIALS), committed)
        # Appends come in order; only a duplicate waits for an offset that lies further back.
        if not self.waiting or self.waiting[-1] < entry:
            self.waiting.append(entry)
        else:
            insort(self.waiting, entry)
        return self

    def advance(self, high_watermark: Offset) -> None:
        while self.waiting and self.waiting[0][0] <= high_watermark:
            self.waiting.popleft()[2](None)

    def fail_below(self, high_watermark: Offset, error: RequestError) -> None:
        """Who waits for what is committed by now will not get what else it wants."""
        while self.waiting and self.waiting[0][0] <= high_watermark:
            self.waiting.popleft()[2](error)

    def fail_all(self, error: RequestError) -> None:
        while self.waiting:
            self.waiting.popleft()[2](error)


NO_COMMIT_WAITERS: Final = CommitWaiters()


class FetchWaiter(Protocol):
    """A parked fetch: looks at its partitions again when one of them has moved."""

    def look_again(self) -> None: ...
    def answer_now(self) -> None:
        """Answer with what there is, though it is not enough."""
        ...


class FetchWaiters:
    """The fetches parked at one partition, in the order of their coming."""

    __slots__ = ("waiting",)

    def __init__(self) -> None:
        self.waiting: dict[FetchWaiter, None] = {}
        """To look at, as above."""

    def __len__(self) -> int:
        return len(self.waiting)

    def joined(self, waiter: FetchWaiter) -> FetchWaiters:
        """With one more: where nobody waited, another object."""
        if self is NO_FETCH_WAITERS:
            return FetchWaiters().joined(waiter)
        self.waiting[waiter] = None
        return self

    def discard(self, waiter: FetchWaiter) -> None:
        self.waiting.pop(waiter, None)

    def wake(self) -> None:
        # A woken fetch that is answered removes itself from every partition it waits at.
        for waiter in list(self.waiting):
            waiter.look_again()

    def release(self) -> None:
        """Have all of them answered now."""
        for waiter in list(self.waiting):
            waiter.answer_now()


NO_FETCH_WAITERS: Final = FetchWaiters()
