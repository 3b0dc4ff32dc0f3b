"""A partition's leader epochs: who asks "where did epoch e end?" learns where histories part."""

from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple

from tidemark.protocol.types import NO_EPOCH, NO_OFFSET, Epoch, Offset


class EpochStart(NamedTuple):
    """One leader epoch, and the offset of its first record."""

    epoch: Epoch
    start_offset: Offset


class EpochTable:
    """The epochs by their starts. Invariant: epochs grow strictly, and so do start offsets.

    An epoch in which nothing was appended is forgotten when the next one begins where it did: no
    record carries it, so no client can ask for it and be answered wrongly.
    """

    __slots__ = ("_starts",)

    def __init__(self, starts: Iterable[EpochStart] = ()) -> None:
        self._starts: list[EpochStart] = []
        for start in starts:
            self.begin(start)

    @property
    def starts(self) -> tuple[EpochStart, ...]:
        return tuple(self._starts)

    @property
    def newest(self) -> Epoch:
        """The epoch in force; -1 if there was none yet."""
        return self._starts[-1].epoch if self._starts else NO_EPOCH

    def begin(self, start: EpochStart) -> None:
        """Open an epoch that is larger than any before, at the end of the log."""
        assert start.epoch > self.newest
        while self._starts and self._starts[-1].start_offset >= start.start_offset:
            self._starts.pop()
        self._starts.append(start)

    def epoch_at(self, offset: Offset) -> Epoch:
        """The epoch of the record at `offset`; -1 if it is older than the table."""
        index = bisect_right(self._starts, offset, key=lambda start: start.start_offset) - 1
        return self._starts[index].epoch if index >= 0 else NO_EPOCH

    def end_of(self, epoch: Epoch, log_end: Offset) -> tuple[Epoch, Offset]:
        """The largest epoch at or below `epoch`, and its end, as OffsetForLeaderEpoch says it.

        An epoch that never was is answered with the one before it (apache/kafka#5678), one that is
        still to come with -1 and -1. One older than the table ends where the table begins.
        """
        if not self._starts or epoch > self.newest or epoch < 0:
            return NO_EPOCH, NO_OFFSET
        index = bisect_right(self._starts, epoch, key=lambda start: start.epoch) - 1
        if index < 0:
            return epoch, self._starts[0].start_offset
        is_last = index + 1 == len(self._starts)
        return self._starts[index].epoch, (
            log_end if is_last else self._starts[index + 1].start_offset
        )
