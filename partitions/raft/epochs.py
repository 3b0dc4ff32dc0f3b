"""What a group's log looks like: where each epoch starts, and where the log begins and ends.

It answers "do you hold this position?" without reading the log. The core keeps it in step with
what it has asked to be written; who writes mirrors it on disk.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from functools import partial
from typing import Final

from tidemark.partitions.raft.entries import Configuration, EpochStart
from tidemark.protocol.types import NO_EPOCH, NO_OFFSET, Epoch, Offset, Position

# Made for every run of batches: calling the class takes twice the time.
_position: Final = partial(tuple.__new__, Position)


def _epoch_of(row: EpochStart) -> Epoch:
    return row.epoch


def _start_of(row: EpochStart) -> Offset:
    return row.start_offset


class LogShape:
    """The epoch table with the log's ends.

    Invariant: epochs grow strictly, start offsets never fall, none is above the log end. All rows
    are kept, also of epochs without a record: each is an entry that has to be replicated.
    """

    __slots__ = ("_base_config", "_base_epoch", "_rows", "last", "start_offset")

    def __init__(
        self,
        rows: Iterable[EpochStart] = (),
        *,
        start_offset: Offset,
        end_offset: Offset,
        base_epoch: Epoch = NO_EPOCH,
        config: Configuration,
    ) -> None:
        """`base_epoch` and `config` hold before the first row."""
        self._rows = tuple(rows)
        self._base_epoch = base_epoch
        self._base_config = config
        self.start_offset = start_offset
        # The last entry's position; what precedes the first entry if there is none.
        self.last = Position(self._rows[-1].epoch if self._rows else base_epoch, end_offset)
        self.trim(start_offset)

    @property
    def rows(self) -> tuple[EpochStart, ...]:
        return self._rows

    @property
    def end_offset(self) -> Offset:
        return self.last.offset

    @property
    def config(self) -> Configuration:
        """The configuration in force: it is as soon as it is written."""
        return self._rows[-1].config if self._rows else self._base_config

    @property
    def start(self) -> Position:
        """Where the log begins: the end of the last entry that is no longer there."""
        first = self._rows[0] if self._rows else None
        if first is not None and first.start_offset < self.start_offset:
            return Position(first.epoch, self.start_offset)
        return Position(self._base_epoch, self.start_offset)

    def rows_up_to(self, position: Position) -> tuple[EpochStart, ...]:
        """The epochs that begin at or before it."""
        return tuple(row for row in self._rows if row.position <= position)

    def contains(self, position: Position) -> bool:
        """Whether an entry ends there: then this log and any other with it are the same up to it.

        It is only asked about ends of entries of some replica's log.
        """
        epoch, offset = position
        rows = self._rows
        if not rows:
            return position == self.last
        newest = rows[-1]
        if epoch == newest.epoch:
            return newest.start_offset <= offset <= self.last.offset
        if epoch > newest.epoch:
            return False
        index = bisect_right(rows, epoch, key=_epoch_of) - 1
        if index < 0:
            return position == self._base
        row = rows[index]
        return row.epoch == epoch and row.start_offset <= offset <= rows[index + 1].start_offset

    def floor(self, epoch: Epoch) -> Position:
        """The largest epoch here at or below `epoch`, and where it ends here."""
        index = bisect_right(self._rows, epoch, key=_epoch_of) - 1
        if index < 0:
            return self._base
        return Position(self._rows[index].epoch, self._end_of_row(index))

    def epoch_at(self, offset: Offset) -> Epoch:
        """The epoch of the record at `offset`; -1 if it is older than the table."""
        index = bisect_right(self._rows, offset, key=_start_of) - 1
        return self._rows[index].epoch if index >= 0 else self._base_epoch

    def position_of(self, end_offset: Offset) -> Position:
        """Of the entry whose last record is the one before `end_offset`."""
        return Position(self.epoch_at(Offset(end_offset - 1)), end_offset)

    def end_of(self, epoch: Epoch) -> tuple[Epoch, Offset]:
        """The largest epoch at or below `epoch`, and its end, as OffsetForLeaderEpoch says it.

        An epoch that never was is answered with the one before it (apache/kafka#5678), one that is
        still to come with -1 and -1. One older than the table ends where the table begins.
        """
        rows = self._rows
        if not rows or epoch < 0 or epoch > rows[-1].epoch:
            return NO_EPOCH, NO_OFFSET
        index = bisect_right(rows, epoch, key=_epoch_of) - 1
        if index < 0:
            return epoch, rows[0].start_offset
        return rows[index].epoch, self._end_of_row(index)

    def begin(self, row: EpochStart) -> None:
        """An epoch starts at the log's end."""
        assert row.epoch > self.last.epoch
        assert row.start_offset == self.last.offset
        self._rows += (row,)
        self.last = row.position

    def extend(self, end_offset: Offset) -> None:
        """Records of the newest epoch were appended."""
        epoch, end = self.last
        assert end_offset > end
        assert self._rows
        self.last = _position((epoch, end_offset))

    def truncate(self, to: Position) -> None:
        """Cut what lies behind; the configuration goes back with it."""
        assert self.contains(to)
        while self._rows and self._rows[-1].epoch > to.epoch:
            self._rows = self._rows[:-1]
        self.last = to

    def trim(self, start_offset: Offset) -> None:
        """The log's start has moved. Drops the rows that end below it."""
        assert self.start_offset <= start_offset <= self.last.offset
        self.start_offset = start_offset
        rows = self._rows
        dropped = 0
        while dropped + 1 < len(rows) and rows[dropped + 1].start_offset < start_offset:
            dropped += 1
        if dropped:
            self._base_epoch, self._base_config = rows[dropped - 1].epoch, rows[dropped - 1].config
            self._rows = rows[dropped:]

    def reset(self, start: Position, table: Iterable[EpochStart]) -> None:
        """The log is empty now and begins at `start`; `table` has the epochs up to there."""
        self._base_config = self.config
        self._rows = tuple(table)
        self._base_epoch = NO_EPOCH if self._rows else start.epoch
        self.start_offset = start.offset
        self.last = start
        self.trim(start.offset)

    @property
    def _base(self) -> Position:
        """Before the first row."""
        if not self._rows:
            return self.last
        return Position(self._base_epoch, self._rows[0].start_offset)

    def _end_of_row(self, index: int) -> Offset:
        is_newest = index + 1 == len(self._rows)
        return self.last.offset if is_newest else self._rows[index + 1].start_offset
