"""Reading what is committed of a partition, and waiting for more of it."""

from __future__ import annotations

from collections.abc import Mapping

from tidemark.broker.replicas.replica_state import ReplicaState
from tidemark.broker.replicas.waiters import FetchWaiter
from tidemark.partitions.replication.confirming import Confirmed, Question
from tidemark.partitions.replication.observers import Freshness
from tidemark.partitions.replication.standings import RememberedStanding
from tidemark.partitions.state_machines.open_transactions import Over
from tidemark.partitions.storage.slices import LogSlice
from tidemark.partitions.storage.timestamps import Look, Search
from tidemark.protocol.errors import CorruptBatch, ErrorCode, RequestError, StorageError
from tidemark.protocol.records.compression import Compression
from tidemark.protocol.records.header import iter_headers
from tidemark.protocol.types import READ_COMMITTED, READ_UNCOMMITTED, Epoch, NodeId, Offset


class ReadingReplica(ReplicaState):
    """The part of `Replica` that consumers read and wait at."""

    __slots__ = ()

    def end_for(self, isolation: int) -> Offset:
        """How far a reader may read: to where all is committed, or decided as well (F11)."""
        return self.last_stable_offset if isolation == READ_COMMITTED else self.high_watermark

    def has_reader_wait(self, offset: int, epoch: int) -> bool:
        """Whether a reader there, who knows of that leader epoch (-1: of none), has but to wait.

        So it is with most partitions of a large fetch: finding it out step by step takes longer.
        """
        member = self._member
        return (
            member is not None
            and offset == member.high_watermark
            and epoch in (-1, member.epoch)
            and member.is_serving
        )

    def is_readable(self, offset: int, epoch: int) -> bool:
        """Whether a reader there, who knows of that leader epoch (-1: of none), gets what there is,
        and is to be told nothing: as with nearly every fetch, and sooner than step by step."""
        member = self._member
        return (
            member is not None
            and epoch in (-1, member.epoch)
            and member.is_serving
            and member.log.start_offset <= offset <= member.log.end_offset
        )

    @property
    def ends(self) -> tuple[Offset, Offset, Offset]:
        """What every answer says, as `Ends` has it. Raises `RequestError` if there is no replica
        any more."""
        return self.high_watermark, self.last_stable_offset, self.log_start

    def read(
        self,
        offset: Offset,
        *,
        bytes_max: int,
        at_least_one: bool,
        isolation: int = READ_UNCOMMITTED,
    ) -> LogSlice:
        """Committed batches from the one that holds `offset` on. Raises `RequestError`."""
        try:
            return self.member.log.read(
                offset,
                bytes_max=bytes_max,
                end_offset=self.end_for(isolation),
                at_least_one=at_least_one,
            )
        except (OSError, StorageError, CorruptBatch) as error:
            raise self._storage_error("read", error) from error

    def has_zstd(self, found: LogSlice) -> bool:
        """Whether a batch in what was found is compressed so. Only for clients from before zstd,
        which are few: this reads what it looks at. Raises `RequestError`."""
        try:
            headers = iter_headers(found.read())
            return any(header.compression is Compression.ZSTD for _, header in headers)
        except (OSError, CorruptBatch) as error:
            found.release()
            raise self._storage_error("read", error) from error

    def sent(self, found: LogSlice, offset: Offset) -> None:
        """Count what a fetch from `offset` on got."""
        reads, role, size_bytes = self._services.metrics.reads, self.role, len(found)
        reads.fetched[role].value += 1
        reads.fetched_bytes[role].value += size_bytes
        self.bytes_out += size_bytes
        self._metrics.bytes_out.value += size_bytes
        self._metrics.records_out.value += found.end_offset - offset

    def aborted(self, found: LogSlice, offset: Offset) -> list[Over]:
        """The aborted transactions that have records in what was found from `offset` on."""
        return self.member.producers.transactions.aborted(offset, found.end_offset)

    def next_look(self, search: Search, end: Offset) -> Look | None:
        """A step of a search by time below `end`, as `Search.next` has it.

        Raises `RequestError`.
        """
        try:
            return self.log.next_look(search, end_offset=end)
        except (OSError, StorageError, CorruptBatch) as error:
            raise self._storage_error("search", error) from error

    def not_searchable(self, error: CorruptBatch) -> RequestError:
        """What is answered where a batch turned out to be none; the operator is told."""
        return self._storage_error("search", error)

    def epoch_at(self, offset: Offset) -> Epoch:
        """The leader epoch of the record at `offset`; at the end, that of the next one."""
        return self.member.group.shape.epoch_at(offset)

    def epoch_end(self, epoch: Epoch) -> tuple[Epoch, Offset]:
        """The largest epoch at or below `epoch`, and its end, as OffsetForLeaderEpoch says it."""
        return self.member.group.shape.end_of(epoch)

    def check_offset(self, offset: Offset) -> None:
        """Whether a fetch may begin there: anywhere from the start to the end (F9)."""
        log = self.log
        if not log.start_offset <= offset <= log.end_offset:
            raise RequestError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{self.name} has offsets {log.start_offset} to {log.end_offset}",
            )

    # Away from the leader, and being certain of who leads

    @property
    def freshness(self) -> Freshness:
        """How far this replica is behind its leader. Raises `RequestError` if it is not there."""
        return self._services.driver.freshness(self.member)

    def check_fresh(self, offset: int, isolation: int, lag_max_ms: int) -> None:
        """Raises NOT_LEADER_OR_FOLLOWER where a reader had better go back to the leader: this
        replica is too far behind it.

        Where nobody is known to lead, what is here is committed, and given first. A reader who has
        all of it is to look for the leader, too: it may be this broker alone that is cut off.
        """
        fresh = self.freshness
        staleness_ms = fresh.staleness_ms
        if self._services.driver.leader_of(self.key)[0] is not None:
            # Who is behind, and does not know since when, has been away.
            is_behind = bool(fresh.lag_records)
            is_late = is_behind if staleness_ms is None else staleness_ms > lag_max_ms
        else:
            has_more = offset < self.end_for(isolation)
            is_late = not has_more and (staleness_ms is None or staleness_ms > lag_max_ms)
        if is_late:
            self._services.metrics.reads.sent_back.inc()
            raise self.why_not_serving()

    def readers(self, offset: Offset, lag_max_ms: int) -> list[NodeId]:
        """Who may serve a reader at that offset in place of this broker, which leads."""
        return self._services.driver.readers(self.member, offset, lag_max_ms)

    def confirm(self, done: Confirmed) -> Question:
        """Have `done` called once it is certain that this broker leads, or that it does not."""
        return self._services.driver.confirm(self.key, done)

    def observer_standings(self) -> Mapping[NodeId, RememberedStanding]:
        """What the observers of this partition, which is led here, have said of themselves."""
        return self._services.driver.node.observers.standings(self.key)

    def forget_question(self, question: Question) -> None:
        """Whoever asked waits no more."""
        self._services.driver.node.confirmations.forget(question)

    @property
    def role(self) -> str:
        """What this replica is, in a word: leader, follower or observer."""
        member = self.member
        if member.is_leader:
            return "leader"
        return "follower" if member.group.is_voter else "observer"

    # Waiting

    def wait_for_more(self, waiter: FetchWaiter) -> None:
        """Have `waiter` look again whenever the high watermark or the leader changes."""
        self._fetch_waiters = self._fetch_waiters.joined(waiter)

    def stop_waiting(self, waiter: FetchWaiter) -> None:
        self._fetch_waiters.discard(waiter)

    def release_fetches(self) -> None:
        """Have the parked fetches answered with what there is: the broker is stopping."""
        self._fetch_waiters.release()

    def _wake_later(self) -> None:
        if not self._wake_is_due:
            self._wake_is_due = True
            self._services.turn.last(self._wake)

    def _wake(self) -> None:
        self._wake_is_due = False
        self._fetch_waiters.wake()
