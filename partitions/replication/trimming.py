"""A log's start, and how it moves: the leader gives records up, and its followers do likewise."""

from __future__ import annotations

from tidemark.partitions.raft.epochs import LogShape
from tidemark.partitions.replication.log_start import planned
from tidemark.partitions.replication.producer_state import EpochFrom
from tidemark.partitions.replication.solo import SoloReplica
from tidemark.protocol.types import Offset


class TrimmingReplica(SoloReplica):
    """The part of a `GroupReplica` that gives up the beginning of its log."""

    __slots__ = ()

    def move_log_start(self, offset: Offset) -> None:
        """Give up all below a committed offset: now, or once all that was appended is committed.

        The output then has the record that says so, and the files to remove once it is durable.
        """
        assert offset <= self.high_watermark
        if offset > self.log.start_offset:
            self._tell_appended()
            store = self._store
            epochs = _epochs_from(self._group.shape, offset)
            self._start_move = planned(store.log, store.producers, epochs, offset, self._start_move)
            self._move_start_if_due()
            self._touch()

    def apply_retention(self, now_ms: int) -> None:
        """Give up the segments that the settings no longer keep, as `move_log_start`."""
        end_offset = self.high_watermark
        self.move_log_start(self.log.apply_retention(now_ms, end_offset=end_offset))

    def follow_log_start(self, offset: Offset) -> None:
        """The leader has given up all below; so does this replica, once that is committed here.

        Not the log of a state machine: each replica keeps what its own snapshot does not have.
        """
        if (
            self.log.start_offset < offset <= self.high_watermark
            and self._applier is None
            and self._held is None
            and self.failure is None
        ):
            self.move_log_start(offset)

    def _move_start_if_due(self) -> None:
        move = self._start_move
        if (
            move is not None
            and self.high_watermark >= move.once_committed
            # Which may be ahead of the core's, where the flush mode has changed to `os` just now.
            and self._group.high_watermark >= move.to
            and self._held is None
        ):
            if move.to > self.log.start_offset:
                try:
                    self._store.move_start(move.to, move.snapshot)
                except OSError as error:
                    # It waits for the next thing that happens to the group.
                    self._host.warn(f"{self._store.name}: its start cannot be moved now: {error}")
                    return
                self._group.trim(self._store.first_batch)
                self._tell_committed()
            self._start_move = None

    def _plan_start_anew(self) -> None:
        """The log's end has been cut, and with it what the plan was made of."""
        move, self._start_move = self._start_move, None
        if move is not None:
            epochs = _epochs_from(self._group.shape, move.to)
            self._start_move = planned(self.log, self._store.producers, epochs, move.to, None)


def _epochs_from(shape: LogShape, offset: Offset) -> list[EpochFrom]:
    """Those of the batches from an offset on."""
    later = [row for row in shape.rows if row.start_offset > offset]
    first = EpochFrom(shape.epoch_at(offset), offset)
    return [first, *(EpochFrom(row.epoch, row.start_offset) for row in later)]
