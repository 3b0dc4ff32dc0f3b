"""Records that are given up (DeleteRecords) beside transactions: in the midst of open ones, too.

What a log had below its start counts as read by whoever was to read what is committed, if the
log's own words say that it was committed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tidemark.protocol.types import ORIGIN, Offset, TopicPartition
from tidemark.testing.checkers.history import History, Send, Value
from tidemark.testing.simulator.groups import SimulatedGroup

if TYPE_CHECKING:
    from tidemark.testing.simulator.transactions.play import Play


class Deletions:
    """Of one run. Groups read the inputs, and what is compacted is kept: only words are deleted."""

    def __init__(self, play: Play, groups: Sequence[SimulatedGroup]) -> None:
        self._play = play
        self._words = [group for group in groups if group.partition in play.places.words]
        # How far each partition's records were given up at most.
        self._wanted_below: dict[TopicPartition, Offset] = {}

    def choose(self, group: SimulatedGroup) -> SimulatedGroup:
        """Whose are to go, in place of those of any group."""
        return self._words[group.partition.partition % len(self._words)]

    def end_offset(self, group: SimulatedGroup) -> Offset:
        """What is below may go: who reads all that is committed, and not only what is decided, has
        read it."""
        return self._play.reader_of_all.cursors[group.partition].offset

    def wanted(self, group: SimulatedGroup, offset: Offset) -> None:
        before = self._wanted_below.get(group.partition, ORIGIN.offset)
        self._wanted_below[group.partition] = max(before, offset)

    def given_up(self, partition: TopicPartition) -> set[Value]:
        """What was committed there, if any of it may be gone."""
        if partition not in self._wanted_below:
            return set()
        return {*self._play.judge.values(self._play.places.key(partition))}

    def without(self, history: History) -> list[Send]:
        """The sends, but for what was committed and given up before it was polled."""
        polled = {(each.partition, each.value) for poll in history.polls for each in poll.records}
        sends = [
            replace(send, values=tuple(dict(left)), offsets=tuple(dict(left).values()))
            if (left := self._left_of(send, polled)) is not None
            else send
            for send in history.sends
        ]
        return [send for send in sends if send.values]

    def _left_of(
        self, send: Send, polled: set[tuple[TopicPartition, Value]]
    ) -> list[tuple[Value, Offset]] | None:
        """`None` for all."""
        below = self._wanted_below.get(send.partition, ORIGIN.offset)
        if not send.offsets or send.offsets[0] >= below:
            return None
        committed = self.given_up(send.partition)
        return [
            (value, offset)
            for value, offset in zip(send.values, send.offsets, strict=True)
            if offset >= below or (send.partition, value) in polled or value not in committed
        ]
