"""One group's replica on this broker's disk: the core, the log, the producers.

The core decides, and says in a `Ready` what is to be done. This does it: batches go to the log's
page cache, everything that must be durable becomes a journal record, and what may be said only then
is left with the outbox.

Truncations and resets are *write-ahead*: the files are touched only once the journal says that they
will be. Until then the group hears nothing; what it is told waits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple

from tidemark.partitions.raft.entries import Entry, EpochStart, Run
from tidemark.partitions.raft.group import Group
from tidemark.partitions.raft.messages import HardState, Message, PullResponse, ResetRequest
from tidemark.partitions.raft.ready import Leadership, Outgoing, Ready
from tidemark.partitions.replication.applier import Applier, apply_committed
from tidemark.partitions.replication.checking import RefusedMessage, bytes_of, checked
from tidemark.partitions.replication.host import Host
from tidemark.partitions.replication.peer_messages import GroupMessage
from tidemark.partitions.replication.producer_state import ProducerState
from tidemark.partitions.replication.reading import read_entries
from tidemark.partitions.replication.recent import RecentRuns
from tidemark.partitions.state_machines.producers import Duplicate, ProducerTable
from tidemark.partitions.storage.journal import records as journal
from tidemark.partitions.storage.journal.records import JournalRecord
from tidemark.partitions.storage.log import Log
from tidemark.partitions.storage.retention import Removal
from tidemark.partitions.storage.state_db import Condition, PartitionKey, PartitionState
from tidemark.protocol.errors import CorruptBatch, ErrorCode, RequestError, StorageError
from tidemark.protocol.records.header import BatchHeader, iter_headers, place
from tidemark.protocol.types import Epoch, NodeId, Offset, Position

_DEFERRED_MAX: Final = 256
"""Messages that wait for the journal; a peer sends again what is dropped."""


class Appended(NamedTuple):
    """Where batches lie. They are committed once `Position(epoch, end_offset)` is."""

    base_offset: Offset
    end_offset: Offset
    epoch: Epoch


class GroupReplica:
    """Made by `opening.open_group`, then given to the node.

    Invariant: log_start <= high_watermark <= log_end, and the high watermark never goes back.
    """

    __slots__ = (
        "_appended_end",
        "_applier",
        "_condition",
        "_deferred",
        "_held",
        "_host",
        "_is_alone",
        "_last_batch",
        "_name",
        "_producers",
        "_recent",
        "_syncs",
        "_wanted_start",
        "committed",
        "durable_end",
        "failure",
        "group",
        "hard_state",
        "high_watermark",
        "is_eager",
        "key",
        "led_epoch",
        "log",
        "preference",
        "priority",
    )

    def __init__(
        self,
        key: PartitionKey,
        *,
        name: str,
        host: Host,
        log: Log,
        producers: ProducerState,
        hard_state: HardState,
        condition: Condition,
        syncs_before_ack: bool,
        applier: Applier | None,
        make_group: Callable[[GroupReplica], Group],
    ) -> None:
        """For `opening`. All that is in the log is durable, or counts as that."""
        self.key = key
        self.log = log
        self.hard_state = hard_state
        self.durable_end = log.end_offset
        """All below is on the disk; with `flush=os`, in the page cache at least."""
        self.failure: str | None = None
        """Why this replica takes no part any more; it begins anew with the next start."""
        self.led_epoch: Epoch | None = None
        """The last one that this replica has led, since it was opened."""
        self.priority = 0
        self.preference: Sequence[NodeId] = ()
        self.is_eager = False
        self._name = name
        self._host = host
        self._producers = producers
        self._syncs = syncs_before_ack
        self._applier = applier
        self._condition = condition
        self._recent: RecentRuns = {}
        self._wanted_start = log.start_offset
        self._held: Ready | None = None
        self._deferred: list[tuple[NodeId, Message]] | None = None
        self._appended_end: Offset | None = None
        # The journal batch with the newest record of this group.
        self._last_batch = 0
        self.group = make_group(self)
        self._is_alone = self._votes_alone()
        self.committed = self.group.committed
        self.high_watermark = self.committed.offset

    def __repr__(self) -> str:
        return f"<GroupReplica {self._name} epoch {self.group.epoch}>"

    @property
    def producers(self) -> ProducerTable:
        return self._producers.table

    @property
    def epoch(self) -> Epoch:
        return self.group.epoch

    @property
    def leader(self) -> NodeId | None:
        return self.group.leader

    @property
    def is_leader(self) -> bool:
        return self.group.is_leader and self.failure is None

    @property
    def is_serving(self) -> bool:
        """Whether clients may append and read here as at a leader."""
        return self.group.is_serving and self.failure is None

    @property
    def is_accepting(self) -> bool:
        """Whether it serves, and is not about to hand the lead over."""
        group = self.group
        return group.is_serving and group.is_accepting and self.failure is None

    @property
    def log_start(self) -> Offset:
        return self.log.start_offset

    @property
    def log_end(self) -> Offset:
        return self.log.end_offset

    @property
    def is_held(self) -> bool:
        """Whether its files wait for the journal."""
        return self._held is not None

    @property
    def is_voter(self) -> bool:
        return self.group.is_voter

    @property
    def syncs_before_ack(self) -> bool:
        """Whether batches must be synced before they count (`flush=commit`). May be changed."""
        return self._syncs

    @syncs_before_ack.setter
    def syncs_before_ack(self, syncs: bool) -> None:
        """Raises `OSError` if the disk does not take what was in the page cache only until now;
        blocks for it, so a caller with much there syncs it before."""
        if syncs and not self._syncs:
            # The journal must not go on where the log's files may end.
            self.log.sync()
        self._tell_appended()
        self._syncs = syncs

    def state_row(self, recovery_point: Offset) -> PartitionState:
        """What a checkpoint records. Not while it `is_held`.

        `recovery_point` is what a sync of the log has returned, or what was recorded last.
        """
        assert self._held is None
        return PartitionState(
            key=self.key,
            name=self._name,
            log_start=self.log.start_offset,
            recovery_point=recovery_point,
            hard_state=self.hard_state,
            epochs=self.group.shape.rows,
            condition=Condition.CLEAN if self.group.is_clean else self._condition,
            is_journaled=self._syncs,
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
        producers = self._producers.table
        has_producer = header.producer_id >= 0
        if has_producer:
            verdict = producers.check(header)
            if isinstance(verdict, Duplicate):
                return verdict
        base_offset, epoch = self.log.end_offset, self.group.epoch
        place(records, 0, base_offset=base_offset, epoch=epoch)
        end_offset = self._append(base_offset, epoch, records)
        if has_producer:
            producers.append(header, base_offset, heard_ms=now_ms)
        return Appended(base_offset, end_offset, epoch)

    def append_own(self, batches: bytes) -> Appended:
        """Append batches of the broker's own, as they are. Raises as `append` does."""
        if not self.is_accepting:
            raise self._not_serving()
        base_offset = offset = self.log.end_offset
        epoch, placed = self.group.epoch, bytearray(batches)
        for at, header in iter_headers(placed):
            place(placed, at, base_offset=offset, epoch=epoch)
            offset = Offset(offset + header.last_offset_delta + 1)
        return Appended(base_offset, self._append(base_offset, epoch, placed), epoch)

    def _append(self, base_offset: Offset, epoch: Epoch, records: bytearray | memoryview) -> Offset:
        # One copy for all who keep it: the journal, and the frames to the followers.
        kept = bytes(records) if self._syncs or not self._is_alone else None
        end_offset = self.log.append(records)
        host, syncs = self._host, self._syncs
        if kept is not None:
            if syncs:
                self._last_batch = host.outbox.stage_record(journal.batches(self.key, kept))
            if not self._is_alone:
                host.recent.keep(self._recent, Run(epoch, base_offset, end_offset, kept))
        # The core hears of it once, before anything else happens to the group.
        self._appended_end = end_offset
        host.dirty[self] = None
        if self._is_alone and not syncs:
            self._commit(Position(epoch, end_offset))
        return end_offset

    def _tell_appended(self) -> None:
        if self._appended_end is not None:
            end_offset, self._appended_end = self._appended_end, None
            self.group.appended(end_offset, is_durable=not self._syncs)

    def _not_serving(self) -> RequestError:
        if self.failure is not None:
            return RequestError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self._name}: {self.failure}")
        return RequestError(
            ErrorCode.NOT_LEADER_OR_FOLLOWER, f"this broker does not serve as {self._name}'s leader"
        )

    def move_log_start(self, offset: Offset) -> Removal:
        """Give up all below a committed offset. The removal is to be run once the output batch
        that says so is persisted."""
        assert offset <= self.high_watermark
        removal = self.log.delete_before(offset)
        self._log_start_moved()
        return removal

    def apply_retention(self, now_ms: int) -> Removal:
        """Remove the segments that the settings no longer keep; else as `move_log_start`."""
        before = self.log.start_offset
        removal = self.log.apply_retention(now_ms, end_offset=self.high_watermark)
        if self.log.start_offset != before:
            self._log_start_moved()
        return removal

    def _log_start_moved(self) -> None:
        start = self.log.start_offset
        self._last_batch = self._host.outbox.stage_record(journal.log_start(self.key, start))
        self.group.trim(start)
        self._host.committed(self)

    def hear_log_start(self, offset: Offset) -> None:
        """The leader has given up all below; so does this replica, once that is committed here.

        Not the log of a state machine: each replica keeps what its own snapshot does not have.
        """
        if self._applier is not None:
            return
        self._wanted_start = max(self._wanted_start, offset)
        self._follow_log_start()

    def _follow_log_start(self) -> None:
        if self.log.start_offset < self._wanted_start <= self.high_watermark and not self.is_held:
            self._host.outbox.stage_removal(self.move_log_start(self._wanted_start))

    # Events

    def receive(self, source: NodeId, message: Message) -> None:
        """A message of another replica of the group."""
        if self.failure is not None:
            return
        if self._deferred is not None:
            if len(self._deferred) < _DEFERRED_MAX:
                self._deferred.append((source, message))
            return
        try:
            message = checked(message)
        except RefusedMessage as error:
            self._host.warn(f"{self._name}: refused what broker {source} sent: {error}")
            return
        self._tell_appended()
        self.group.receive(source, message)
        self._host.dirty[self] = None

    def tell(self, event: Callable[[Group], None]) -> None:
        """Have the core take an event that is not a message; later, while it is held."""
        if self.failure is not None:
            return
        if self._held is not None:
            self._host.outbox.wait_for(self._last_batch, partial(self.tell, event))
            return
        self._tell_appended()
        event(self.group)
        self._host.dirty[self] = None

    # Doing what the core says

    def work(self) -> None:
        """Do what has come of the events since the last time."""
        self._tell_appended()
        group = self.group
        while group.has_ready and self._held is None and self.failure is None:
            self._do(group.take_ready())

    def _do(self, ready: Ready) -> None:
        if self.failure is not None:  # its log could not be read for what is in the Ready
            return
        if ready.reset is not None or ready.truncate_to is not None:
            self._hold(ready)
            return
        try:
            self._write(ready.entries)
        except (OSError, StorageError, CorruptBatch) as error:
            self.fail(f"cannot be written to: {error}")
            return
        records = self._records_of(ready)
        if records:
            self._last_batch = self._host.outbox.stage(records)
        for out in ready.send:
            self._send(out)
        self._tell(ready)
        if ready.token:
            self._host.outbox.wait_for(
                self._last_batch,
                partial(self._persisted, ready.token, ready.send_after, self.log.end_offset),
            )

    def _hold(self, ready: Ready) -> None:
        """Have the journal say it before the files are touched."""
        self._held, self._deferred = ready, []
        self._host.held += 1
        self._recent.clear()
        self._last_batch = self._host.outbox.stage(self._records_of(ready), then=self._release)
        for out in ready.send:
            self._send(out)

    def _release(self) -> None:
        """The journal has it: now the files."""
        ready, deferred = self._held, self._deferred
        assert ready is not None
        assert deferred is not None
        self._held = self._deferred = None
        self._host.held -= 1
        if self.failure is not None:
            return
        try:
            if ready.reset is not None:
                self._reset(ready.reset)
            elif ready.truncate_to is not None:
                self._truncate(ready.truncate_to.offset)
            self._write(ready.entries)
        except (OSError, StorageError, CorruptBatch) as error:
            self.fail(f"cannot be cut: {error}")
            return
        self._tell(ready)
        self._persisted(ready.token, ready.send_after, self.log.end_offset)
        for source, message in deferred:
            self.receive(source, message)

    def _records_of(self, ready: Ready) -> list[JournalRecord]:
        key, records = self.key, []
        if ready.reset is not None:
            reset = ready.reset
            records.append(journal.reset(key, reset.start, reset.table, reset.snapshot))
        if ready.truncate_to is not None:
            records.append(journal.truncate(key, ready.truncate_to))
        for entry in ready.entries:
            if isinstance(entry, EpochStart):
                records.append(journal.epoch_start(key, entry))
            elif self._syncs:
                records.append(journal.batches(key, bytes_of(entry)))
        if ready.hard_state is not None:
            self.hard_state = ready.hard_state
            records.append(journal.hard_state(key, ready.hard_state))
        return records

    def _write(self, entries: Sequence[Entry]) -> None:
        log, producers = self.log, self._producers.table
        for entry in entries:
            if isinstance(entry, Run):
                data, now_ms = bytes_of(entry), self._host.now_ms()
                log.append(data)
                for _, header in iter_headers(data):
                    producers.append(header, header.base_offset, heard_ms=now_ms)

    def _truncate(self, offset: Offset) -> None:
        if offset < self.log.end_offset:
            self.log.truncate(offset)
            self._producers.rebuild(self.log)
        self.durable_end = min(self.durable_end, offset)

    def _reset(self, request: ResetRequest) -> None:
        self.log.reset(request.start.offset)
        self._producers.rebuild(self.log)
        self.durable_end = request.start.offset
        if self._applier is not None:
            self._applier.restore(request.snapshot, request.start)

    def _persisted(self, token: int, send_after: Sequence[Outgoing], end_offset: Offset) -> None:
        if self.failure is not None:
            return
        self.durable_end = max(self.durable_end, min(end_offset, self.log.end_offset))
        for out in send_after:
            self._send(out)
        self._tell_appended()
        self.group.persisted(token)
        self._host.dirty[self] = None

    def _send(self, out: Outgoing) -> None:
        message = out.message
        if self._applier is not None:
            message = _with_snapshot(message, self._applier)
        self._host.outbox.send(out.to, GroupMessage(self.key, message))

    def _tell(self, ready: Ready) -> None:
        host = self._host
        if ready.leadership is not None:
            self._is_alone = self._votes_alone()
            if ready.leadership.leader == host.node_id:
                self.led_epoch = ready.leadership.epoch
            else:
                self._recent.clear()
            host.leadership(self, ready.leadership)
        if ready.committed is not None:
            if ready.committed > self.committed:
                self._commit(ready.committed)
            host.committed(self)
            host.outbox.committed(self.key)
            self._follow_log_start()
        if ready.is_serving is not None:
            host.outbox.serving(self.key)
        if ready.failure is not None:
            self.fail(str(ready.failure))

    def _commit(self, committed: Position) -> None:
        self.committed = committed
        self.high_watermark = committed.offset
        if self._applier is not None:
            try:
                apply_committed(self._applier, self.log, committed.offset)
            except (OSError, StorageError, CorruptBatch) as error:
                self.fail(f"cannot be read: {error}")

    def _votes_alone(self) -> bool:
        return self.group.config.members == (self._host.node_id,)

    def read(self, after: Position, up_to: Position, bytes_max: int) -> tuple[Entry, ...]:
        """Entries for another replica: the core's way to its own log."""
        rows = self.group.shape.rows
        try:
            return read_entries(rows, self.log, self._recent, after, up_to, bytes_max=bytes_max)
        except (OSError, StorageError, CorruptBatch, RequestError) as error:
            self.fail(f"cannot be read: {error}")
            return ()

    def fail(self, what: str) -> None:
        """Take no part any more: nothing more is promised, and who led has resigned.

        What was said holds: it was durable when it was said.
        """
        if self.failure is not None:
            return
        self.failure = what
        host = self._host
        host.warn(f"{self._name} {what}")
        host.outbox.failed(self.key)
        host.leadership(self, Leadership(self.group.epoch, None))


def _with_snapshot(message: Message, applier: Applier) -> Message:
    """The core knows where a reset begins; the state machine knows its state there."""
    if isinstance(message, ResetRequest):
        return replace(message, snapshot=applier.snapshot_at(message.start.offset))
    if isinstance(message, PullResponse) and message.reset is not None:
        snapshot = applier.snapshot_at(message.reset.start.offset)
        return replace(message, reset=replace(message.reset, snapshot=snapshot))
    return message
