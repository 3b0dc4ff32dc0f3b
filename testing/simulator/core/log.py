"""A replica's log and vote as a disk has them, with nothing to write or to parse."""

from __future__ import annotations

from bisect import bisect_left
from typing import TypeAlias

from tidemark.partitions.raft.entries import Configuration, Entry, EpochStart, Run
from tidemark.partitions.raft.epochs import LogShape
from tidemark.partitions.raft.messages import HardState, ResetRequest
from tidemark.protocol.records.header import BatchHeader
from tidemark.protocol.types import NO_EPOCH, ORIGIN, Offset, Position

Write: TypeAlias = ResetRequest | Position | Entry | HardState
"""Begin anew, cut behind a position, append, vote."""


class CoreLog:
    """What is there after some writes. Runs have the headers of their batches for bytes."""

    __slots__ = ("_bases", "_batches", "_config", "hard_state", "rows", "start", "synced_end")

    def __init__(self, config: Configuration) -> None:
        self.start: Position = ORIGIN
        self.rows: list[EpochStart] = []
        self.hard_state = HardState(NO_EPOCH, None)
        self.synced_end = Offset(0)
        """Where the voters changed last: what precedes it is not only in the page cache."""
        self._config = config
        self._batches: list[BatchHeader] = []
        self._bases: list[Offset] = []

    @property
    def end_offset(self) -> Offset:
        return self._batches[-1].next_offset if self._batches else self.start.offset

    def shape(self) -> LogShape:
        return LogShape(
            self.rows,
            start_offset=self.start.offset,
            end_offset=self.end_offset,
            base_epoch=NO_EPOCH if self.rows else self.start.epoch,
            config=self._config,
        )

    def copy(self) -> CoreLog:
        log = CoreLog(self._config)
        log.start, log.rows, log.hard_state = self.start, [*self.rows], self.hard_state
        log.synced_end = self.synced_end
        log._batches, log._bases = [*self._batches], [*self._bases]
        return log

    def apply(self, write: Write) -> None:
        match write:
            case Run(records=records):
                assert isinstance(records, tuple)
                for batch in records:
                    self.append(batch)
            case HardState():
                self.hard_state = write
            case EpochStart():
                assert write.start_offset == self.end_offset
                if write.config != (self.rows[-1].config if self.rows else self._config):
                    self.synced_end = write.start_offset
                self.rows.append(write)
            case Position():
                self.truncate(write)
            case ResetRequest():
                self.start, self.rows = write.start, [*write.table]
                self._batches, self._bases = [], []
                self.synced_end = write.start.offset

    def append(self, batch: BatchHeader) -> None:
        assert batch.base_offset == self.end_offset
        assert batch.partition_leader_epoch == self.rows[-1].epoch
        self._batches.append(batch)
        self._bases.append(batch.base_offset)

    def truncate(self, to: Position) -> None:
        while self.rows and self.rows[-1].epoch > to.epoch:
            self.rows.pop()
        self.synced_end = min(self.synced_end, to.offset)
        first = bisect_left(self._bases, to.offset)
        del self._batches[first:], self._bases[first:]

    def trim(self, start_offset: Offset) -> None:
        shape = self.shape()
        shape.trim(start_offset)
        first = bisect_left(self._bases, start_offset)
        del self._batches[:first], self._bases[:first]
        self.start, self.rows = shape.start, [*shape.rows]

    def batches(self, start: Offset, end: Offset) -> list[BatchHeader]:
        return self._batches[bisect_left(self._bases, start) : bisect_left(self._bases, end)]

    def boundaries(self) -> list[Offset]:
        """Where a batch begins, or the log ends."""
        return [*self._bases, self.end_offset]

    def _first_row(self, after: Position, up_to: Position) -> EpochStart | None:
        """The first epoch that begins between the two; mostly it is among the last."""
        found = None
        for row in reversed(self.rows):
            if row.position <= after:
                break
            if row.position <= up_to:
                found = row
        return found

    def read(self, after: Position, up_to: Position, count_max: int) -> tuple[Entry, ...]:
        """The entries between two positions, about so many batches."""
        entries: list[Entry] = []
        position = after
        while position < up_to and count_max > 0:
            following = self._first_row(position, up_to)
            end = following.start_offset if following else up_to.offset
            if position.offset < end:
                batches = tuple(self.batches(position.offset, end)[:count_max])
                count_max -= len(batches)
                first, last = batches[0], batches[-1]
                entries.append(Run(position.epoch, first.base_offset, last.next_offset, batches))
            else:
                assert following is not None
                entries.append(following)
            position = entries[-1].position
        return tuple(entries)
