"""Appends and their answers where everybody is in step: see `raft.steady`.

The same is done, in the same order, as on the long way in `group_replica`; only nothing of it is
put into objects, and a follower writes a run as soon as it comes, and not at the end of the turn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tidemark.partitions.raft import steady
from tidemark.partitions.replication.checking import checked_headers
from tidemark.partitions.replication.participating import ParticipatingReplica
from tidemark.protocol.errors import CorruptBatch, RequestError, StorageError
from tidemark.protocol.types import BytesLike, Epoch, NodeId, Offset, Position

if TYPE_CHECKING:
    from tidemark.partitions.raft.entries import Run
    from tidemark.partitions.replication.recent import KeptRun
    from tidemark.partitions.replication.steady_lane import SteadyLane

JOINED_BYTES_MAX: Final = 64 * 1024
"""So much is put together in memory; a larger run goes to the followers from the log's file."""
RUN_BYTES_MAX: Final = 1024 * 1024
"""About as much is in one message, so that a heartbeat waits for one and not for all."""


class SteadyReplica(ParticipatingReplica):
    """The part of a `GroupReplica` that has a short way."""

    __slots__ = ()

    @property
    def _is_steady(self) -> bool:
        """Whether nothing but the core decides what there is to do."""
        return (
            self.failure is None
            and self._held is None
            and self._start_move is None
            and self._applier is None
            and not self.is_eager
        )

    def work_steadily(self, lane: SteadyLane) -> bool:
        """Do what has come of the events since the last time, if a leader has only appended and
        committed; else nothing has happened."""
        store, outbox = self._store, self._host.outbox
        if self._solo_epoch is not None and store.syncs_before_ack and self._start_move is None:
            if store.last_staged == outbox.staging:
                lane.stage_solo(self, self._solo_epoch, self.log.end_offset)
            return True
        if not self._group.has_ready and self._appended_end is None and not self._is_alone:
            self._end_solo()
            return self._start_move is None
        if not self._is_steady or (self._is_alone and not store.syncs_before_ack):
            return False
        is_new = self._appended_end is not None
        if is_new and store.syncs_before_ack and store.last_staged != outbox.staging:
            return False
        self._end_solo()
        ready: steady.SteadyReady[KeptRun | Run] | None
        while ready := steady.take_ready(self._group, self._find_run):
            token, committed, to, run = ready
            if run is not None:
                lane.send(self, to, run, self._group.committed.offset)
            if committed is not None:
                self._note_committed(committed)
            if run is not None:
                self._told_committed(to)
            if token:
                lane.stage(self, token, self.log.end_offset)
            if run is None or run.end_offset == self.log.end_offset:
                if self._is_alone and committed is not None:
                    self._look_whether_solo()
                return True
        return False

    def take_steadily(
        self,
        lane: SteadyLane,
        source: NodeId,
        span: tuple[Epoch, Offset, Offset],
        committed: Offset,
        records: BytesLike,
    ) -> bool:
        """Take in a run that the leader sends, if it is what comes next; else nothing has happened.

        `span`: the run's epoch, and from where to where it reaches. `records` is not needed any
        more when this returns.
        """
        epoch, base, end = span
        store, group = self._store, self._group
        syncs = store.syncs_before_ack
        if not (
            self._is_steady
            and steady.may_take(group, source, epoch, base)
            and (syncs or self._host.outbox.is_persisted(store.last_staged))
        ):
            return False
        headers = checked_headers(records, epoch, base, end)
        if headers is None:
            return False
        try:
            store.take_run(records, headers)
        except (OSError, StorageError, CorruptBatch):
            return False  # It will fail again on the long way, which knows what to do then.
        self._end_solo()
        token, moved = steady.take_in(group, end, committed)
        if syncs:
            lane.stage(self, token, end, source, epoch, base)
        else:
            lane.answer(self, source, epoch, base, end)
            self.persisted_steadily(token, end)
        if moved is not None:
            self._note_committed(moved)
        self._touch_if_due()
        return True

    def acknowledged_steadily(
        self, source: NodeId, epoch: Epoch, base: Offset, match: Offset
    ) -> bool:
        """A follower has a run, durably; `False` if that has to be thought about."""
        if self.failure is not None or self._held is not None:
            return False
        self._end_solo()
        if not steady.acknowledged(self._group, source, epoch, base, match):
            return False
        self._touch_if_due()
        return True

    def persisted_steadily(self, token: int, end_offset: Offset) -> None:
        """What the lane has staged for this replica is durable."""
        self.durable_end = max(self.durable_end, min(end_offset, self.log.end_offset))
        self._end_solo()
        steady.persisted(self._group, token)
        self._touch_if_due()

    def persisted_solo(self, epoch: Epoch, end_offset: Offset) -> None:
        """What was appended up to there is durable, and so committed; unless the core was told of
        it meanwhile, and will hear that as of everything. It may be less than what is committed,
        where the flush mode has changed."""
        if epoch == self._solo_epoch:
            self.durable_end = max(self.durable_end, end_offset)
            self._note_committed(Position(epoch, end_offset))

    def _touch_if_due(self) -> None:
        """Of all that happens to a batch, the half leads to nothing: there is no visit for that."""
        if self._group.has_ready or self._start_move is not None or self._is_alone:
            self._touch()

    def _find_run(self, base: Offset, end: Offset) -> KeptRun | Run | None:
        kept = self._store.recent_run(base, end, bytes_max=JOINED_BYTES_MAX)
        if kept is not None:
            return kept
        try:
            epoch = self._group.epoch
            return self._store.run_in_file(epoch, base, end, bytes_max=RUN_BYTES_MAX)
        except (OSError, StorageError, CorruptBatch, RequestError):
            return None  # As where it is taken in: the long way knows what to do.

    def _note_committed(self, committed: Position) -> None:
        if committed[1] > self.high_watermark or committed > self.committed:
            self._commit(committed)
        self._tell_committed()
        self._host.outbox.committed(self.key)
