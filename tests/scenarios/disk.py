"""A replica's disk: what is written in order, and how much of it would survive a crash."""

from __future__ import annotations

from dataclasses import dataclass, field

from tidemark.partitions.raft.entries import Configuration, Entry, EpochStart, Run
from tidemark.partitions.raft.epochs import LogShape
from tidemark.partitions.raft.messages import HardState, ResetRequest
from tidemark.protocol.types import NO_EPOCH, ORIGIN, Offset, Position


@dataclass
class Image:
    """What is on a disk. A record is one byte, so a log is bytes with epochs."""

    start: Position = ORIGIN
    rows: list[EpochStart] = field(default_factory=list)
    records: list[tuple[int, int]] = field(default_factory=list)  # (epoch, byte) from the start on
    hard_state: HardState = field(default_factory=lambda: HardState(NO_EPOCH, None))
    first_config: Configuration = field(default_factory=lambda: Configuration(()))

    @property
    def end_offset(self) -> Offset:
        return Offset(self.start.offset + len(self.records))

    @property
    def last(self) -> Position:
        return Position(self.rows[-1].epoch if self.rows else self.start.epoch, self.end_offset)

    @property
    def content(self) -> bytes:
        return bytes(byte for _, byte in self.records)

    def shape(self) -> LogShape:
        return LogShape(
            self.rows,
            start_offset=self.start.offset,
            end_offset=self.end_offset,
            base_epoch=self.start.epoch if not self.rows else NO_EPOCH,
            config=self.first_config,
        )

    def copy(self) -> Image:
        return Image(self.start, [*self.rows], [*self.records], self.hard_state, self.first_config)

    def apply(self, op: Op) -> None:
        match op:
            case ResetRequest():
                self.start, self.rows, self.records = op.start, [*op.table], []
            case Position():
                self.truncate(op)
            case EpochStart():
                assert op.start_offset == self.end_offset
                self.rows.append(op)
            case Run():
                assert isinstance(op.records, bytes)
                assert op.base_offset == self.end_offset
                assert self.rows[-1].epoch == op.epoch
                self.records += [(op.epoch, byte) for byte in op.records]
            case HardState():
                self.hard_state = op

    def truncate(self, to: Position) -> None:
        self.rows = [row for row in self.rows if row.epoch <= to.epoch]
        del self.records[to.offset - self.start.offset :]

    def trim(self, start_offset: Offset) -> None:
        shape = self.shape()
        shape.trim(start_offset)
        del self.records[: start_offset - self.start.offset]
        self.start, self.rows = shape.start, [*shape.rows]

    def read(self, after: Position, up_to: Position, bytes_max: int) -> tuple[Entry, ...]:
        """Entries between two positions, cut into runs of `bytes_max`, one run a call."""
        entries: list[Entry] = []
        position = after
        while position < up_to:
            starts = [r for r in self.rows if position < r.position <= up_to]
            following = starts[0] if starts else None
            end = following.start_offset if following else up_to.offset
            if position.offset < end:
                cut = Offset(min(end, position.offset + bytes_max))
                first = position.offset - self.start.offset
                records = self.records[first : cut - self.start.offset]
                data = bytes(byte for _, byte in records)
                assert {epoch for epoch, _ in records} <= {position.epoch}
                entries.append(Run(position.epoch, position.offset, cut, data))
                if len(data) >= bytes_max:
                    break
                bytes_max -= len(data)
            else:
                assert following is not None
                entries.append(following)
            position = entries[-1].position
        return tuple(entries)


Op = ResetRequest | Position | Entry | HardState


class Disk:
    """An image as it is read, and the one that a crash would leave."""

    def __init__(self, image: Image) -> None:
        self.written = image
        self.durable = image.copy()
        self._unstaged: list[Op] = []
        self._pending: list[tuple[int, list[Op]]] = []

    @property
    def pending(self) -> list[int]:
        """The tokens that are not durable yet."""
        return [token for token, _ in self._pending]

    @property
    def unsynced(self) -> list[Op]:
        """What a crash may lose."""
        return [op for _, ops in self._pending for op in ops] + self._unstaged

    def write(self, op: Op) -> None:
        self.written.apply(op)
        self._unstaged.append(op)

    def stage(self, token: int) -> None:
        """What was written since the last token is durable with this one."""
        self._pending.append((token, self._unstaged))
        self._unstaged = []

    def sync(self, token: int) -> None:
        """Everything up to this token is durable now."""
        while self._pending and self._pending[0][0] <= token:
            for op in self._pending.pop(0)[1]:
                self.durable.apply(op)

    def trim(self, start_offset: Offset) -> None:
        self.written.trim(start_offset)
        self.durable.trim(start_offset)
