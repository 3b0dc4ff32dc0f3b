"""What traffic a partition has, across a change of its leader.

Whoever comes to lead begins to measure at nothing, and knows after some seconds what the leader
before it knew. Were it believed at once, its broker would seem to carry nothing of what it has just
taken over, and leaders that should stay where they are would be moved to and fro.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, NamedTuple
from uuid import UUID

from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.messages.peer.load_report import GroupLoad

SETTLE_MS: Final = 10_000
"""For so long a new leader's measurement may only add to what was known."""


class Rate(NamedTuple):
    """Bytes a second."""

    taken: float
    given: float


NOTHING: Final = Rate(0.0, 0.0)


class _Known(NamedTuple):
    epoch: int
    """In which it was told."""
    rate: Rate


class Rates:
    """Of the partitions that have traffic, or had some under the leader before this one."""

    def __init__(self) -> None:
        self._known: dict[PartitionKey, _Known] = {}
        self._settling: dict[PartitionKey, tuple[int, int]] = {}
        """The epochs of new leaders that have told, and until when that is not all there is; in
        the order in which they began to tell."""

    def look(self, key: PartitionKey, load: GroupLoad | None, now_ms: int) -> Rate:
        """The traffic of a partition whose leader has told `load`, or nothing yet."""
        known = self._known.get(key)
        if load is None:
            return NOTHING if known is None else known.rate
        told = Rate(float(load.bytes_in_per_second), float(load.bytes_out_per_second))
        if known is not None and known.epoch != load.epoch:
            epoch, until_ms = self._settling.get(key, (-1, 0))
            if epoch != load.epoch:
                self._settling.pop(key, None)
                until_ms = now_ms + SETTLE_MS
                self._settling[key] = load.epoch, until_ms
            if now_ms < until_ms:
                return Rate(max(told.taken, known.rate.taken), max(told.given, known.rate.given))
        self._settling.pop(key, None)
        if told == NOTHING:
            self._known.pop(key, None)
        else:
            self._known[key] = _Known(load.epoch, told)
        return told

    def settled(self, now_ms: int) -> list[PartitionKey]:
        """Those whose new leaders are to be believed by now. They are to be looked at again."""
        settled = list[PartitionKey]()
        for key, (_, until_ms) in self._settling.items():
            if now_ms < until_ms:
                break
            settled.append(key)
        return settled

    def clear(self) -> None:
        """What was known is of no use any more."""
        self._known.clear()
        self._settling.clear()

    def forget_topics(self, topics: Collection[UUID]) -> None:
        """They were deleted."""
        self._known = {key: e for key, e in self._known.items() if key.topic_id not in topics}
        self._settling = {key: e for key, e in self._settling.items() if key.topic_id not in topics}
