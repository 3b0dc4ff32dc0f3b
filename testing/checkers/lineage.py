"""Which entries a log holds, told by its epochs alone.

On purpose not the core's own table: what judges must not share its mistakes with what is judged.
"""

from collections.abc import Iterable

from tidemark.protocol.types import ORIGIN, Epoch, Offset, Position


class Lineage:
    """The epochs of one log, where each begins, and where the log ends.

    Epochs ascend and their starts never descend. Two logs that hold a position are the same up
    to it, so this says of two logs how far they are the same.
    """

    __slots__ = ("end_offset", "starts")

    def __init__(self, starts: Iterable[Position] = (), end_offset: Offset = ORIGIN.offset) -> None:
        self.starts = list(starts)
        self.end_offset = end_offset

    def __repr__(self) -> str:
        return f"<Lineage {' '.join(map(str, self.starts))} to {self.end_offset}>"

    @property
    def last(self) -> Position:
        return Position(self.starts[-1].epoch, self.end_offset) if self.starts else ORIGIN

    def begin(self, start: Position) -> None:
        """An epoch starts; one that is here already is the same entry again."""
        if all(start.epoch != known.epoch for known in self.starts):
            assert start.offset == self.end_offset, "an epoch that starts elsewhere than at the end"
            assert start > self.last, "an epoch that starts after a later one"
            self.starts.append(start)

    def extend(self, end: Position) -> None:
        """Batches up to `end` follow, of the last epoch."""
        assert end.epoch == self.last.epoch, "batches of an epoch that is not the log's last"
        self.end_offset = max(self.end_offset, end.offset)

    def truncate(self, to: Position) -> None:
        """Nothing behind `to` is left."""
        self.starts = [start for start in self.starts if start <= to]
        self.end_offset = min(self.end_offset, to.offset)

    def reset(self, starts: Iterable[Position], start: Position) -> None:
        """The log was given up; it holds `start` and nothing behind it."""
        self.starts = [known for known in starts if known <= start]
        self.end_offset = start.offset

    def contains(self, position: Position) -> bool:
        epoch, offset = position
        end = self.end_offset
        for start in reversed(self.starts):
            if start.epoch == epoch:
                return start.offset <= offset <= end
            if start.epoch < epoch:
                break
            end = start.offset
        return position == ORIGIN

    def start_of(self, epoch: Epoch) -> Offset | None:
        """Where an epoch of this log starts; `None` if it has no such epoch."""
        for start in reversed(self.starts):
            if start.epoch == epoch:
                return start.offset
        return None

    def end_of(self, epoch: Epoch) -> Offset | None:
        """Where an epoch of this log ends; `None` if it has no such epoch."""
        end = self.end_offset
        for start in reversed(self.starts):
            if start.epoch == epoch:
                return end
            end = start.offset
        return None

    def shared(self, other: "Lineage") -> Position:
        """The last entry that both logs hold."""
        for start in reversed(self.starts):
            ours, theirs = self.end_of(start.epoch), other.end_of(start.epoch)
            if ours is not None and theirs is not None:
                return Position(start.epoch, min(ours, theirs))
        return ORIGIN

    def copy(self) -> "Lineage":
        return Lineage(self.starts, self.end_offset)
