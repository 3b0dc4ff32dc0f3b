"""A cluster in which nothing is to be done, and how long that is so without thinking again."""

from __future__ import annotations

from typing import NamedTuple

from tidemark.partitions.balancing.eligibility import why_cooling
from tidemark.partitions.balancing.leaders import Plan
from tidemark.partitions.balancing.refusals import Reason
from tidemark.partitions.balancing.settings import Settings
from tidemark.partitions.balancing.snapshot import Group, Snapshot


class Settled(NamedTuple):
    """A plan that had no moves."""

    snapshot: Snapshot
    """What it was made of."""
    waits: bool
    """Whether it would have some, were there not groups that had just moved."""

    @classmethod
    def by(cls, plan: Plan, snapshot: Snapshot) -> Settled:
        waits = any(refusal.reason is Reason.COOL_DOWN for refusal in plan.refusals)
        return cls(snapshot, waits)

    def holds(self, now: Snapshot, rules: Settings) -> bool:
        """Whether another plan would be the same, as far as that is seen without making it.

        Groups that were let be for a while, and are no more, are looked at one by one where a move
        waits for them. Where none does, once for all: two of them might change places.
        """
        last = self.snapshot
        if last.groups != now.groups:
            return False
        cooling = [each for each in last.groups if _is_cooling(each, last.now_ms, rules)]
        cooled = [each for each in cooling if not _is_cooling(each, now.now_ms, rules)]
        return not cooled or (not self.waits and len(cooled) < len(cooling))


def _is_cooling(group: Group, now_ms: int, rules: Settings) -> bool:
    return group.moved_ms is not None and why_cooling(group, now_ms, rules) is not None
