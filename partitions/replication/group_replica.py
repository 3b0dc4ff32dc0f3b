"""One group's replica on this broker's disk: the core, and what it takes to do what it says.

The core decides, and says in a `Ready` what is to be done. This does it: batches go to the log's
page cache, everything that must be durable becomes a journal record, and what may be said only then
is left with the outbox.

Truncations and resets are *write-ahead*: the files are touched only once the journal says that they
will be. Until then the group hears nothing; what it is told waits. The entries behind a cut are in
the journal with it; with `flush=os`, which has no batches there, once they are written.

Where the files cannot be cut now (no descriptor is left, say) they are in a while, and so long the
journal keeps what it says of them: no checkpoint passes over what is still to be done.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from tidemark.partitions.raft.entries import Entry
from tidemark.partitions.raft.group import Group
from tidemark.partitions.raft.messages import (
    AppendRequest,
    Message,
    PullResponse,
    ResetRequest,
)
from tidemark.partitions.raft.ready import Leadership, Outgoing, Ready
from tidemark.partitions.replication.appending import AppendingReplica
from tidemark.partitions.replication.applier import apply_committed, with_snapshot
from tidemark.partitions.replication.checking import RefusedMessage, checked
from tidemark.partitions.replication.group_log import Appended
from tidemark.partitions.replication.out_of_room import without_records
from tidemark.partitions.replication.participating import HeldReady, may_be_done_later
from tidemark.partitions.replication.peer_messages import GroupMessage
from tidemark.partitions.replication.replica_state import CutBatches
from tidemark.partitions.replication.steady_replica import SteadyReplica
from tidemark.partitions.replication.trimming import TrimmingReplica
from tidemark.protocol.errors import CorruptBatch, RequestError, StorageError
from tidemark.protocol.types import NodeId, Offset, Position

__all__ = ["Appended", "GroupReplica"]

_DEFERRED_MAX: Final = 256
"""Messages that wait for the journal; a peer sends again what is dropped."""
_CUT_PRODUCERS_MAX: Final = 1_000
_CUTS_MAX: Final = 4
"""That nobody took note of: no client has come since."""


def _has_entries(message: Message) -> bool:
    return isinstance(message, AppendRequest) and bool(message.entries)


class GroupReplica(AppendingReplica, TrimmingReplica, SteadyReplica):
    """Made by `opening.open_group`, then given to the node.

    Invariant: log_start <= high_watermark <= log_end, and the high watermark never goes back.
    """

    __slots__ = ()

    def _touch(self) -> None:
        self._host.dirty[self] = None

    def _tell_committed(self) -> None:
        self._host.committed(self)

    def _told_committed(self, to: Sequence[NodeId]) -> None:
        self._host.told_committed(self, to)

    def _resign(self) -> None:
        self._host.leadership(self, Leadership(self._group.epoch, None))

    def _pause(self) -> None:
        self._host.paused(self)

    # Events

    def receive(self, source: NodeId, message: Message) -> None:
        """A message of another replica of the group."""
        if self.failure is not None:
            return
        if self._held is not None:
            if len(self._deferred) < _DEFERRED_MAX:
                self._deferred += (partial(self.receive, source, message),)
            return
        if self.log.room.is_out:
            rest = without_records(message)
            if rest is None:
                self._host.missed.add(self)
                return
            message = rest
        try:
            message = checked(message, self._group.epoch)
        except RefusedMessage as error:
            self._host.warn(f"{self._store.name}: refused what broker {source} sent: {error}")
            return
        self._end_solo()
        self._group.receive(source, message)
        self._host.dirty[self] = None

    def tell(self, event: Callable[[Group], None]) -> None:
        """Have the core take an event that is not a message; later, while it is held.

        Raises `RequestError` if the core refuses it at once.
        """
        if self.failure is not None:
            return
        if self._held is not None:
            self._deferred += (partial(self._tell_later, event),)
            return
        self._end_solo()
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
        self._look_whether_solo()

    def _do(self, ready: Ready) -> None:
        if self.failure is not None:  # its log could not be read for what is in the Ready
            return
        if ready.is_cut:
            self._hold(ready)
            return
        if not self._write(ready):
            return
        self._stage(ready)
        self._send(ready.send)
        self._tell(ready)
        if ready.send and self._group.is_leader:
            self._told_committed([out.to for out in ready.send if _has_entries(out.message)])
        if ready.token:
            self._store.when_durable(self._when_persisted(ready))

    def _write(self, ready: Ready) -> bool:
        """Write its entries; whether the group goes on."""
        end_offset = self.log.end_offset
        try:
            self._store.write(ready.entries)
        except OSError as error:
            self._take_back(ready, end_offset, error)
            return False
        except (StorageError, CorruptBatch) as error:
            self.fail(f"cannot be written to: {error}")
            return False
        return True

    def _stage(self, ready: Ready, then: Callable[[], None] | None = None) -> None:
        if ready.hard_state is not None:
            self.hard_state = ready.hard_state
        self._store.stage(ready, then)

    def _hold(self, ready: Ready) -> None:
        """Have the journal say it before the files are touched."""
        staged = ready if self.syncs_before_ack else ready._replace(entries=())
        self._held = HeldReady(ready, later=ready.entries[len(staged.entries) :])
        self._host.held += 1
        self._stage(staged, then=self.release)
        self._send(ready.send)

    def release(self) -> None:
        """The journal has what was held, all but what is for later: now the files."""
        held, self._is_postponed = self._held, False
        assert held is not None
        if self.failure is None and not self._cut(held.ready):
            return
        self._held = None
        deferred, self._deferred = self._deferred, ()
        self._host.held -= 1
        if self.failure is not None or not self._write(held.ready):
            return
        self._go_on_behind_cut(held)
        for each in deferred:
            each()

    def _cut(self, ready: Ready) -> bool:
        """Cut the files; whether that is over, be it because the replica has failed."""
        self._note_cut_batches(ready)
        try:
            self._store.cut(ready)
            if ready.reset is not None and self._applier is not None:
                self._applier.restore(ready.reset.snapshot, ready.reset.start)
        except (OSError, StorageError, CorruptBatch) as error:
            if may_be_done_later(error):
                self._host.warn(f"{self._store.name} cannot be cut now: {error}")
                self._is_postponed = True
                self._pause()
                return False
            # What the disk has is not known: the next start finds out.
            self.fail(f"cannot be cut: {error}. Start the broker again")
            self._judge(error)
        return True

    def _note_cut_batches(self, ready: Ready) -> None:
        producers = self._store.producers
        if producers.is_stale:  # It was tried before.
            return
        cut = ready.truncate_to
        offset = self.high_watermark if cut is None else cut.offset
        batches = producers.table.sent_from(offset, producers_max=_CUT_PRODUCERS_MAX)
        if batches:
            noted = CutBatches(self._host.now_ms(), batches)
            self.cut_batches = (*self.cut_batches[-_CUTS_MAX + 1 :], noted)

    def _go_on_behind_cut(self, held: HeldReady) -> None:
        ready, later = held
        self.durable_end = min(self.durable_end, self.log.end_offset)
        self._plan_start_anew()
        if later:
            self._stage(Ready(entries=later))
        self._tell(ready)
        if later:
            self._store.when_durable(self._when_persisted(ready))
        else:
            self._when_persisted(ready)()

    def _when_persisted(self, ready: Ready) -> Callable[[], None]:
        return partial(self._persisted, ready.token, ready.send_after, self.log.end_offset)

    def _persisted(self, token: int, send_after: Sequence[Outgoing], end_offset: Offset) -> None:
        if self.failure is not None:
            return
        self.durable_end = max(self.durable_end, min(end_offset, self.log.end_offset))
        self._send(send_after)
        self._end_solo()
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
        transactions = self._store.producers.table.transactions
        if not transactions.is_settled:
            transactions.settle(committed.offset)
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
