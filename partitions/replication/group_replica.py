"""One group's replica on this broker's disk: the core, and what it takes to do what it says.

The core decides, and says in a `Ready` what is to be done. This does it: batches go to the log's
page cache, everything that must be durable becomes a journal record, and what may be said only then
is left with the outbox.

Truncations and resets are *write-ahead*: the files are touched only once the journal says that they
will be. Until then the group hears nothing; what it is told waits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from tidemark.partitions.raft.entries import Entry, EpochStart
from tidemark.partitions.raft.epochs import LogShape
from tidemark.partitions.raft.group import Group
from tidemark.partitions.raft.messages import HardState, Message, PullResponse, ResetRequest
from tidemark.partitions.raft.ready import Leadership, Outgoing, Ready
from tidemark.partitions.replication.applier import Applier, apply_committed, with_snapshot
from tidemark.partitions.replication.checking import RefusedMessage, checked
from tidemark.partitions.replication.group_log import Appended, GroupLog
from tidemark.partitions.replication.host import Host
from tidemark.partitions.replication.log_start import StartMove, planned
from tidemark.partitions.replication.peer_messages import GroupMessage
from tidemark.partitions.state_machines.producers import Duplicate, ProducerTable
from tidemark.partitions.storage.log import Log
from tidemark.partitions.storage.state_db import Condition, PartitionState
from tidemark.protocol.errors import CorruptBatch, ErrorCode, RequestError, StorageError
from tidemark.protocol.records.header import BatchHeader, iter_headers, place
from tidemark.protocol.types import Epoch, NodeId, Offset, Position

__all__ = ["Appended", "GroupReplica"]

_DEFERRED_MAX: Final = 256
"""Messages that wait for the journal; a peer sends again what is dropped."""


class GroupReplica:
    """Made by `opening.open_group`, then given to the node.

    Invariant: log_start <= high_watermark <= log_end, and the high watermark never goes back.
    """

    __slots__ = (
        "_appended_end",
        "_applier",
        "_committed_epoch",
        "_condition",
        "_deferred",
        "_group",
        "_held",
        "_host",
        "_is_alone",
        "_solo_epoch",
        "_start_move",
        "_store",
        "durable_end",
        "failure",
        "hard_state",
        "high_watermark",
        "is_eager",
        "is_paused",
        "key",
        "led_epoch",
        "log",
        "preference",
        "priority",
    )

    def __init__(
        self,
        store: GroupLog,
        *,
        host: Host,
        shape: LogShape,
        hard_state: HardState,
        condition: Condition,
        applier: Applier | None,
    ) -> None:
        """For `opening`. All that is in the log is durable, or counts as that."""
        self.key = store.key
        self.log: Log = store.log
        self.hard_state = hard_state
        """The newest that was given to the journal."""
        self.high_watermark = shape.start_offset
        self.durable_end = store.log.end_offset
        """All below is on the disk; with `flush=os`, in the page cache at least."""
        self.failure: str | None = None
        """Why this replica takes no part now."""
        self.led_epoch: Epoch | None = None
        """The last one that this replica has led, since it was opened."""
        self.priority = 0
        self.preference: Sequence[NodeId] = ()
        self.is_eager = False
        self.is_paused = False
        """Whether clients' writes are held, because the lead is about to go elsewhere."""
        self._store = store
        self._host = host
        self._condition = condition
        self._applier = applier
        # What was appended since the core has heard of it.
        self._appended_end: Offset | None = None
        # While nothing but appends happens: see `_find_solo`.
        self._solo_epoch: Epoch | None = None
        self._start_move: StartMove | None = None
        self._held: Ready | None = None
        self._deferred: list[tuple[NodeId, Message]] = []
        self._group = self._new_group(
            shape,
            is_clean=condition is Condition.CLEAN,
            may_vote=condition is not Condition.DAMAGED,
        )
        self._committed_epoch = self._group.committed.epoch
        self._is_alone = self._group.config.members == (host.node_id,)

    def __repr__(self) -> str:
        return f"<GroupReplica {self._store.name} epoch {self._group.epoch}>"

    def _new_group(self, shape: LogShape, *, is_clean: bool, may_vote: bool) -> Group:
        return Group(
            node_id=self._host.node_id,
            shape=shape,
            hard_state=self.hard_state,
            committed=self.high_watermark,
            read=self._read,
            peers=self._host.peers,
            limits=self._host.limits,
            is_clean=is_clean,
            may_vote=may_vote,
        )

    @property
    def group(self) -> Group:
        """The core, to look at; it knows of all that was appended."""
        self._tell_appended()
        return self._group

    @property
    def committed(self) -> Position:
        """Nothing up to there will ever change; its offset is the high watermark."""
        return Position(self._committed_epoch, self.high_watermark)

    @property
    def producers(self) -> ProducerTable:
        return self._store.producers.table

    @property
    def epoch(self) -> Epoch:
        return self._group.epoch

    @property
    def leader(self) -> NodeId | None:
        return self._group.leader

    @property
    def is_leader(self) -> bool:
        return self._group.is_leader and self.failure is None

    @property
    def is_serving(self) -> bool:
        """Whether clients may read here as at a leader.

        Only once this knows what the core does: in between, the high watermark is the one from
        before the election, and nobody may be told that.
        """
        group = self._group
        return group.is_serving and self._committed_epoch == group.epoch and self.failure is None

    @property
    def is_accepting(self) -> bool:
        """Whether clients may append here: it serves, and is not about to hand the lead over."""
        if self._solo_epoch is not None:
            return True
        group = self._group
        return (
            group.is_serving and group.is_accepting and not self.is_paused and self.failure is None
        )

    @property
    def is_solo(self) -> bool:
        """Whether nothing follows from a client's batch that would have to be done in this turn:
        it is committed once it is appended, and nobody has to hear of it."""
        return self._solo_epoch is not None

    @property
    def name(self) -> str:
        return self._store.name

    @property
    def is_held(self) -> bool:  # its files wait for the journal
        return self._held is not None

    @property
    def log_start(self) -> Offset:
        return self.log.start_offset

    @property
    def log_end(self) -> Offset:
        return self.log.end_offset

    @property
    def syncs_before_ack(self) -> bool:
        """Whether batches must be synced before they count (`flush=commit`).

        It may be changed; to true raises `OSError` if the disk does not take what was in the page
        cache only until now, and blocks for it: a caller with much there syncs it before.
        """
        return self._store.syncs_before_ack

    @syncs_before_ack.setter
    def syncs_before_ack(self, syncs: bool) -> None:
        self._tell_appended()
        self._solo_epoch = None
        self._store.set_syncs_before_ack(syncs)

    def state_row(self, recovery_point: Offset) -> PartitionState:
        """What a checkpoint records; not while it `is_held`. `recovery_point` is what a sync of the
        log has returned, or what was recorded last."""
        assert self._held is None
        if self.failure is None:
            # While the broker stops the core may have heard what is not done any more.
            self.log.doubt(self.high_watermark if self._group.has_ready else None)
        return self._store.state_row(
            recovery_point,
            hard_state=self.hard_state,
            epochs=self._group.shape.rows,
            condition=Condition.CLEAN if self._group.is_clean else self._condition,
        )

    # Appending

    def append(
        self, header: BatchHeader, records: bytearray | memoryview, now_ms: int
    ) -> Appended | Duplicate:
        """Append a client's batch that was admitted; `records` is changed in place.

        Raises `RequestError` if this replica does not serve, or for what the producer did wrong,
        and `OSError` or `StorageError` for the disk; nothing is appended then.
        """
        if not self.is_accepting:
            raise self._not_serving()
        has_producer = header.producer_id >= 0
        if has_producer:
            verdict = self._store.producers.table.check(header)
            if isinstance(verdict, Duplicate):
                return verdict
        base_offset, epoch = self.log.end_offset, self._solo_epoch
        if epoch is None:
            epoch = self._group.epoch
            end_offset = self._store.append_batch(
                header, records, epoch, has_followers=not self._is_alone
            )
            self._note_appended(end_offset, epoch)
        else:
            end_offset = self.log.append_batch(records, header, epoch)
            self._appended_end = self.high_watermark = end_offset
            self._host.dirty[self] = None
        if has_producer:
            self._store.producers.table.append(header, base_offset, heard_ms=now_ms)
        return Appended(base_offset, end_offset, epoch)

    def append_own(self, batches: bytes) -> Appended:
        """Append batches of the broker's own, as they are. Raises as `append` does."""
        if not self.is_accepting:
            raise self._not_serving()
        base_offset = offset = self.log.end_offset
        epoch, placed = self._group.epoch, bytearray(batches)
        for at, header in iter_headers(placed):
            place(placed, at, base_offset=offset, epoch=epoch)
            offset = Offset(offset + header.last_offset_delta + 1)
        end_offset = self._store.append(placed, epoch, has_followers=not self._is_alone)
        self._note_appended(end_offset, epoch)
        return Appended(base_offset, end_offset, epoch)

    def _find_solo(self) -> Epoch | None:
        """The epoch in which a client's batch is committed as soon as it is in the page cache, and
        nothing follows from it that has to be done: this replica is alone, and syncs nothing.

        It holds for as long as nothing happens to the group but appends.
        """
        group = self._group
        is_solo = (
            self._applier is None
            and self._is_alone
            and not self._store.syncs_before_ack
            and not self.is_eager
            and self.is_accepting
            and not group.progress()
            and group.committed == (group.epoch, self.log.end_offset)
        )
        return group.epoch if is_solo else None

    def _note_appended(self, end_offset: Offset, epoch: Epoch) -> None:
        # The core hears of it once, before anything else happens to the group.
        self._appended_end = end_offset
        self._host.dirty[self] = None
        if self._is_alone and not self._store.syncs_before_ack:
            self._commit(Position(epoch, end_offset))

    def _tell_appended(self) -> None:
        if self._appended_end is not None:
            end_offset, self._appended_end = self._appended_end, None
            self._group.appended(end_offset, is_durable=not self._store.syncs_before_ack)

    def _not_serving(self) -> RequestError:
        if self.failure is not None:
            what = f"{self._store.name}: {self.failure}"
            return RequestError(ErrorCode.KAFKA_STORAGE_ERROR, what)
        what = f"this broker does not lead {self._store.name}"
        return RequestError(ErrorCode.NOT_LEADER_OR_FOLLOWER, what)

    def pause(self) -> None:
        """Append nothing of clients until `resume_writes`: what was appended is to be committed
        before the lead goes elsewhere."""
        self._solo_epoch = None
        self.is_paused = True

    def resume_writes(self) -> None:
        self.is_paused = False
        self._host.dirty[self] = None

    # The log's start

    def move_log_start(self, offset: Offset) -> None:
        """Give up all below a committed offset: now, or once all that was appended is committed.

        The output then has the record that says so, and the files to remove once it is durable.
        """
        assert offset <= self.high_watermark
        if offset > self.log.start_offset:
            self._tell_appended()
            store = self._store
            self._start_move = planned(store.log, store.producers, offset, self._start_move)
            self._move_start_if_due()
            self._host.dirty[self] = None

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
        if move is not None and self.high_watermark >= move.once_committed and self._held is None:
            self._start_move = None
            if move.to > self.log.start_offset:
                self._store.move_start(move.to, move.snapshot)
                self._group.trim(move.to)
                self._host.committed(self)

    def _plan_start_anew(self) -> None:
        """The log's end has been cut, and with it what the plan was made of."""
        move, self._start_move = self._start_move, None
        if move is not None:
            self._start_move = planned(self.log, self._store.producers, move.to, None)

    # Events

    def receive(self, source: NodeId, message: Message) -> None:
        """A message of another replica of the group."""
        if self.failure is not None:
            return
        if self._held is not None:
            if len(self._deferred) < _DEFERRED_MAX:
                self._deferred.append((source, message))
            return
        try:
            message = checked(message, self._group.epoch)
        except RefusedMessage as error:
            self._host.warn(f"{self._store.name}: refused what broker {source} sent: {error}")
            return
        self._tell_appended()
        self._solo_epoch = None
        self._group.receive(source, message)
        self._host.dirty[self] = None

    def tell(self, event: Callable[[Group], None]) -> None:
        """Have the core take an event that is not a message; later, while it is held.

        Raises `RequestError` if the core refuses it at once.
        """
        if self.failure is not None:
            return
        if self._held is not None:
            self._store.when_durable(partial(self._tell_later, event))
            return
        self._tell_appended()
        self._solo_epoch = None
        event(self._group)
        self._host.dirty[self] = None

    def _tell_later(self, event: Callable[[Group], None]) -> None:
        with suppress(RequestError):  # nobody is there any more to be told
            self.tell(event)

    # Doing what the core says

    def work(self) -> None:
        """Do what has come of the events since the last time."""
        if self.failure is not None:
            return
        self._tell_appended()
        while self._group.has_ready and self._held is None and self.failure is None:
            self._do(self._group.take_ready())
        if self._start_move is not None and self.failure is None:
            self._move_start_if_due()
        self._solo_epoch = None
        self._solo_epoch = self._find_solo()

    def _do(self, ready: Ready) -> None:
        if self.failure is not None:  # its log could not be read for what is in the Ready
            return
        if ready.is_cut:
            self._hold(ready)
            return
        end_offset = self.log.end_offset
        try:
            self._store.write(ready.entries)
        except OSError as error:
            self._take_back(ready, end_offset, error)
            return
        except (StorageError, CorruptBatch) as error:
            self.fail(f"cannot be written to: {error}")
            return
        self._stage(ready)
        self._send(ready.send)
        self._tell(ready)
        if ready.token:
            self._store.when_durable(self._when_persisted(ready))

    def _stage(self, ready: Ready, then: Callable[[], None] | None = None) -> None:
        if ready.hard_state is not None:
            self.hard_state = ready.hard_state
        self._store.stage(ready, then)

    def _hold(self, ready: Ready) -> None:
        """Have the journal say it before the files are touched."""
        self._held = ready
        self._host.held += 1
        self._stage(ready, then=self._release)
        self._send(ready.send)

    def _release(self) -> None:
        """The journal has it: now the files."""
        ready, self._held = self._held, None
        deferred, self._deferred = self._deferred, []
        assert ready is not None
        self._host.held -= 1
        if self.failure is not None:
            return
        try:
            self._store.cut(ready)
            if ready.reset is not None and self._applier is not None:
                self._applier.restore(ready.reset.snapshot, ready.reset.start)
            self._store.write(ready.entries)
        except (OSError, StorageError, CorruptBatch) as error:
            self.fail(f"cannot be cut: {error}")
            return
        self.durable_end = min(self.durable_end, self.log.end_offset)
        self._plan_start_anew()
        self._tell(ready)
        self._when_persisted(ready)()
        for source, message in deferred:
            self.receive(source, message)

    def _when_persisted(self, ready: Ready) -> Callable[[], None]:
        return partial(self._persisted, ready.token, ready.send_after, self.log.end_offset)

    def _persisted(self, token: int, send_after: Sequence[Outgoing], end_offset: Offset) -> None:
        if self.failure is not None:
            return
        self.durable_end = max(self.durable_end, min(end_offset, self.log.end_offset))
        self._send(send_after)
        self._tell_appended()
        self._solo_epoch = None
        self._group.persisted(token)
        self._host.dirty[self] = None

    def _send(self, outgoing: Sequence[Outgoing]) -> None:
        for out in outgoing:
            message = out.message
            if self._applier is not None:
                message = with_snapshot(message, self._applier)
            elif isinstance(message, ResetRequest | PullResponse):
                message = with_snapshot(message, self._store)
            self._host.outbox.send(out.to, GroupMessage(self.key, message))

    def _tell(self, ready: Ready) -> None:
        host = self._host
        if ready.leadership is not None:
            self._is_alone = self._group.config.members == (host.node_id,)
            if ready.leadership.leader == host.node_id:
                self.led_epoch = ready.leadership.epoch
                self._store.producers.end_at(self.log.end_offset)
            else:
                self._store.forget_recent()
            host.leadership(self, ready.leadership)
        if ready.committed is not None:
            if ready.committed > self.committed:
                self._commit(ready.committed)
            host.committed(self)
            host.outbox.committed(self.key)
        if ready.is_serving is not None:
            host.outbox.serving(self.key)
        if ready.failure is not None:
            self.fail(str(ready.failure))

    def _commit(self, committed: Position) -> None:
        self._committed_epoch, self.high_watermark = committed
        if self._applier is not None:
            try:
                apply_committed(self._applier, self.log, committed.offset)
            except (OSError, StorageError, CorruptBatch) as error:
                self.fail(f"cannot be read: {error}")

    def _read(self, after: Position, up_to: Position, bytes_max: int) -> tuple[Entry, ...]:
        """The core's way to its own log."""
        try:
            return self._store.read(self._group.shape.rows, after, up_to, bytes_max)
        except (OSError, StorageError, CorruptBatch, RequestError) as error:
            self.fail(f"cannot be read: {error}")
            return ()

    # Failing

    def fail(self, what: str) -> None:
        """Take no part any more: nothing more is promised, and who led has resigned.

        What was said holds: it was durable when it was said.
        """
        if self.failure is not None:
            return
        self.failure = what
        self._appended_end = self._solo_epoch = None
        # The core may be ahead of the files, by what is not done any more: a checkpoint of both
        # must not pass one off as the other.
        self.log.doubt(self.high_watermark)
        self._host.warn(f"{self._store.name} {what}")
        self._host.outbox.failed(self.key)
        self._host.leadership(self, Leadership(self._group.epoch, None))

    def close(self) -> None:
        """The broker takes no part in the group any more. The log is its caller's."""
        if self._held is not None or self._group.has_ready:
            self.log.doubt(self.high_watermark)  # as where it fails: not all of it will be done
        self.failure = self.failure or "it was closed"
        self._solo_epoch = None

    def _take_back(self, ready: Ready, end_offset: Offset, error: OSError) -> None:
        """The disk is full, say. Go back to before the entries, of which nothing was promised and
        nothing is in the journal, and begin anew from there in a while."""
        self.fail(f"cannot be written to now: {error}")
        shape, first = self._group.shape, ready.entries[0]
        if self._group.has_ready:
            return  # There is more to be done on top of it: only a new start can tell.
        epoch = first.epoch
        if isinstance(first, EpochStart):
            epoch = shape.floor(Epoch(epoch - 1)).epoch
        try:
            self._store.truncate(end_offset)
        except (OSError, StorageError):
            return
        shape.truncate(Position(epoch, end_offset))
        # A new core takes all that it finds for durable.
        self._store.when_durable(self._begin_anew)

    def _begin_anew(self) -> None:
        group = self._group
        self._group = self._new_group(group.shape, is_clean=group.is_clean, may_vote=group.may_vote)
        self._host.paused(self)

    def resume(self) -> None:
        """Take part again, as after a new start. For the node, which has seen it pause."""
        self.failure = None
        self.log.doubt(None)
        self._host.outbox.failed(self.key)
