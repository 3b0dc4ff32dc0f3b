"""Whether what a group has committed ever goes back.

Members begin where the group has committed and commit only what they have read since, so no member
has a reason to commit a lower offset than one that was acknowledged before. But a commit that had
no answer may be done late: its connection was cut, its client has gone on by another, and what the
network still held of it comes once the cut is over. Commits have no sequence, so nobody can tell
that it is old, in Kafka neither.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Final, TypeAlias


@dataclass(frozen=True, slots=True)
class Commit:
    """An offset that a member committed, and that was acknowledged."""

    client: str
    partition: int
    offset: int
    started: float
    ended: float


@dataclass(frozen=True, slots=True)
class Committed:
    """What the group had committed, as it was told; 0 for nothing."""

    partition: int
    offset: int
    started: float
    ended: float


RETRIED_SECONDS: Final = 1.0
"""A commit that took longer may have been sent twice, and its first sending be on its way."""

_Step: TypeAlias = Commit | Committed


@dataclass(slots=True)
class Commits:
    """The history of one group's commits in one topic."""

    made: list[Commit] = field(default_factory=list)
    seen: list[Committed] = field(default_factory=list)
    unanswered: list[Commit] = field(default_factory=list)
    """What was asked for, and may have been done at any time since."""

    def regressions(self) -> Iterator[str]:
        """Where somebody saw, or was allowed to make, a commit below one known before."""
        steps: list[_Step] = [*self.made, *self.seen]
        for partition in sorted({step.partition for step in steps}):
            again = [each for each in self.made if each.ended - each.started > RETRIED_SECONDS]
            maybe = [*self.unanswered, *again]
            late = {each.offset for each in maybe if each.partition == partition}
            yield from _of([step for step in steps if step.partition == partition], late)


def _of(steps: list[_Step], late: set[int]) -> Iterator[str]:
    ended = sorted(steps, key=attrgetter("ended"))
    at, highest = 0, 0
    for step in sorted(steps, key=attrgetter("started")):
        while at < len(ended) and ended[at].ended < step.started:
            highest = max(highest, ended[at].offset)
            at += 1
        if step.offset < highest and not (isinstance(step, Committed) and step.offset in late):
            who = f"{step.client} committed" if isinstance(step, Commit) else "the group was told"
            yield (
                f"{who} {step.offset} of partition {step.partition} at {step.started:.3f}, "
                f"and {highest} was committed before"
            )
