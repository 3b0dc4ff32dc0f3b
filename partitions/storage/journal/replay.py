"""What the journal says of one partition, all of it taken together.

Records are not done one by one: what is in the segments and in `state.db` may be of any moment
after the journal's start, because both are written along with the journal, and redo itself may have
been interrupted. Only the sum of the records has one meaning: which batches are there in the end,
from where on the log may be another than on the disk, which epochs it has.
"""

from dataclasses import replace
from typing import assert_never

from tidemark.partitions.raft.entries import EpochStart
from tidemark.partitions.raft.messages import HardState
from tidemark.partitions.storage.journal.reader import Extent, StoredRecord
from tidemark.partitions.storage.journal.records import (
    LogStart,
    RecordKind,
    Reset,
    decode_epoch_start,
    decode_hard_state,
    decode_log_start,
    decode_reset,
    decode_synced,
    decode_truncate,
)
from tidemark.partitions.storage.state_db import Condition, PartitionState
from tidemark.protocol.errors import StorageError
from tidemark.protocol.records.header import iter_headers
from tidemark.protocol.types import BytesLike, Epoch, Offset, Position
from tidemark.protocol.values import dataclass


@dataclass(frozen=True, slots=True)
class Piece:
    """Batches of a log that are in the journal. Those at or above `end` are no longer of it."""

    base: Offset
    end: Offset
    place: Extent


class PartitionReplay:
    """One partition, record after record."""

    def __init__(self, stored: PartitionState, *, left_in: Epoch | None = None) -> None:
        self.stored = stored
        self.state = stored
        self.pieces: list[Piece] = []
        """Ascending, without overlaps; with gaps only where something is missing."""
        self.reset: Reset | None = None
        """The last one: what is on the disk may be a log of before it."""
        self.below_start: LogStart | None = None
        """What the last move of the start has left of the batches that are gone."""
        self.is_in_segments = False
        """The journal has relied on the segments."""
        self.left_in = left_in
        """Nothing came after its deletion; before, it had been in this epoch."""
        self.is_broken = False
        """What is said of it here is not all."""

    def outcome(self) -> PartitionState:
        """What is to be recorded of it. Of one that is broken only a vote is known to be true."""
        if not self.is_broken:
            return self.state
        vote = self.state.hard_state
        return replace(self.stored, hard_state=vote, condition=Condition.DAMAGED)

    def add(self, record: StoredRecord) -> None:
        self.left_in = None
        if not record.is_sound:
            self.is_broken = True
            return
        match record.kind:
            case RecordKind.BATCHES:
                self._append(record)
            case RecordKind.EPOCH_START:
                self._begin_epoch(decode_epoch_start(record.payload))
            case RecordKind.TRUNCATE:
                self._truncate(decode_truncate(record.payload))
            case RecordKind.RESET:
                self._reset(decode_reset(record.payload))
            case RecordKind.HARD_STATE:
                self._vote(decode_hard_state(record.payload))
            case RecordKind.LOG_START:
                self._move_start(decode_log_start(record.payload))
            case RecordKind.SYNCED:
                self._rely_on_segments(decode_synced(record.payload))
            case RecordKind.FORGET:
                raise AssertionError("who calls begins with `forgotten`")
            case _:
                assert_never(record.kind)

    def _append(self, record: StoredRecord) -> None:
        base, end = _extent_of(record.payload)
        self._drop_from(base)
        self.pieces.append(Piece(base, end, record.place))

    def _drop_from(self, offset: Offset) -> None:
        """What the log held from there on is another's from now on."""
        while self.pieces and self.pieces[-1].end > offset:
            last = self.pieces.pop()
            if last.base < offset:
                self.pieces.append(Piece(last.base, offset, last.place))
                break
        if offset < self.state.recovery_point:
            self.state = replace(self.state, recovery_point=offset)

    def _rely_on_segments(self, end: Offset) -> None:
        """All below `end` was synced in the segments when the record was written."""
        self.is_in_segments = True
        self.pieces = [piece for piece in self.pieces if piece.end > end]
        if end > self.state.recovery_point:
            self.state = replace(self.state, recovery_point=end)

    def _begin_epoch(self, start: EpochStart) -> None:
        # The stored rows may be of a later moment. Those that came after this one are among the
        # records that follow.
        kept = (row for row in self.state.epochs if row.epoch < start.epoch)
        self.state = replace(self.state, epochs=(*kept, start))

    def _truncate(self, to: Position) -> None:
        kept = tuple(row for row in self.state.epochs if row.position <= to)
        self.state = replace(self.state, epochs=kept)
        self._drop_from(to.offset)

    def _reset(self, reset: Reset) -> None:
        self.pieces.clear()
        self.reset = reset
        self.below_start = None
        self.state = replace(
            self.state,
            log_start=reset.start.offset,
            recovery_point=Offset(0),
            epochs=reset.table,
        )

    def _vote(self, state: HardState) -> None:
        # Never back: what is stored may be of a later moment.
        stored = self.state.hard_state
        if state.epoch > stored.epoch or (state.epoch == stored.epoch and stored.voted_for is None):
            self.state = replace(self.state, hard_state=state)

    def _move_start(self, start: LogStart) -> None:
        offset = start.offset
        self.pieces = [piece for piece in self.pieces if piece.end > offset]
        if offset >= self.state.log_start:
            self.below_start = start if start.snapshot else None
            self.state = replace(self.state, log_start=offset)


def forgotten(stored: PartitionState, known: PartitionState) -> PartitionReplay:
    """A partition that was deleted, of which this was `known`. What follows, if anything does, is
    of a new replica.

    The row is that one's then, and so is its condition, of which the journal says nothing.
    """
    fresh = PartitionState(
        key=stored.key,
        name=stored.name,
        condition=stored.condition,
        is_journaled=stored.is_journaled,
    )
    return PartitionReplay(fresh, left_in=known.newest_epoch)


def _extent_of(records: BytesLike) -> tuple[Offset, Offset]:
    """The first offset of batches that lie back to back, and the one after the last."""
    base = end = None
    size_bytes = 0
    for _, header in iter_headers(records):
        base = header.base_offset if base is None else base
        end = header.next_offset
        size_bytes += header.size_bytes
    if base is None or end is None or size_bytes != len(records):
        raise StorageError(f"{len(records)} bytes of a journal record are no whole batches")
    return base, end
