"""A log's epoch starts, as storage needs them: which epoch is in force at an offset."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace

from tidemark.partitions.raft.entries import EpochStart
from tidemark.protocol.types import Epoch, Offset


class EpochsByOffset:
    """What a stored batch's epoch can be, by the epochs of its log."""

    __slots__ = ("_epochs", "_log_start", "_starts")

    def __init__(self, rows: Sequence[EpochStart], log_start: Offset) -> None:
        """`rows` ascend, in epoch and in start offset; those wholly below the log start may be
        missing."""
        self._log_start = log_start
        self._starts = [row.start_offset for row in rows]
        self._epochs = [row.epoch for row in rows]

    def allow(self, epoch: Epoch, offset: Offset) -> bool:
        """Whether a batch at `offset` may carry `epoch`."""
        at = bisect_right(self._starts, offset) - 1
        return offset < self._log_start if at < 0 else self._epochs[at] == epoch

    def end_of(self, epoch: Epoch) -> Offset | None:
        """Where the next epoch begins; `None` if it is the last."""
        at = bisect_right(self._epochs, epoch)
        return self._starts[at] if at < len(self._starts) else None


def rows_within(rows: Iterable[EpochStart], end_offset: Offset) -> tuple[EpochStart, ...]:
    """The rows of a log that ends at `end_offset`.

    Rows are lost where the log was in the page cache only, and the power failed: its epochs are
    durable and its batches are not. A replica that lost any is unclean.

    A change of the voters is not lost, because what precedes it is synced before it is durable
    (`replication/group_log.py`). Where that was not so yet, the configuration stays the newest that
    was durable: it was in force, and may have been committed. If each went back to one of its own,
    two could be elected in one epoch.
    """
    rows = tuple(rows)
    kept = tuple(row for row in rows if row.start_offset <= end_offset)
    if len(kept) in (0, len(rows)):
        return kept
    return (*kept[:-1], replace(kept[-1], config=rows[-1].config))
