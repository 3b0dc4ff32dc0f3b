"""One partition on this broker: appends, the high watermark, and who waits for it.

Everything runs on the loop's thread. What blocks (the disk, `state.db`) is awaited, and nothing is
half done across an await.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

import trio

from tidemark.broker.replicas.admission import admit
from tidemark.broker.replicas.epochs import EpochTable
from tidemark.broker.replicas.replica_parts import LogState, ReplicaServices, log_settings
from tidemark.broker.replicas.waiters import Committed, CommitWaiters, FetchWaiter, FetchWaiters
from tidemark.partitions.state_machines.producers import Duplicate
from tidemark.partitions.state_machines.topic_configs import TopicConfig
from tidemark.partitions.storage.log import Log
from tidemark.partitions.storage.slices import LogSlice
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.partitions.storage.syncing import SyncCapture
from tidemark.partitions.storage.timestamps import TimestampAndOffset
from tidemark.protocol.errors import CorruptBatch, ErrorCode, RequestError, StorageError
from tidemark.protocol.records.header import iter_headers, place, place_log_append_time
from tidemark.protocol.types import NO_TIMESTAMP_MS, BytesLike, Epoch, Offset, TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaSpec:
    """Which partition a replica is of."""

    topic: str
    topic_id: UUID
    partition: int
    config: TopicConfig

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    @property
    def key(self) -> PartitionKey:
        """As in `state.db`."""
        return PartitionKey(self.topic_id, self.partition)


class Appended(NamedTuple):
    """Where a produced batch lies. It is committed when the high watermark reaches `end_offset`."""

    base_offset: Offset
    end_offset: Offset
    append_time_ms: int
    """The timestamp the broker gave the records; -1 if they keep their own."""


class Replica:
    """One partition. Made by `opening.open_replicas`; used through `Topics`.

    Invariant: log_start <= high_watermark <= log_end, and the high watermark never goes back.
    Every method that needs the log raises `RequestError` when it is not there: NOT_LEADER once
    the replica is closed, UNKNOWN_TOPIC_OR_PARTITION once it is deleted, KAFKA_STORAGE_ERROR while
    its files cannot be served (`failure` says why).
    """

    def __init__(
        self,
        spec: ReplicaSpec,
        services: ReplicaServices,
        *,
        epochs: EpochTable,
        state: LogState | None,
        failure: str | None = None,
    ) -> None:
        self.topic = spec.topic
        self.topic_id = spec.topic_id
        self.partition = spec.partition
        self.name = str(spec.topic_partition)
        self.key = spec.key
        self.config = spec.config
        self.epochs = epochs
        self.epoch: Epoch = epochs.newest
        self.failure = failure
        """Why the files cannot be served; `None` while they can."""
        self.high_watermark: Offset = state.log.end_offset if state is not None else Offset(0)
        self._services = services
        self._log = state.log if state is not None else None
        self._producers = state.producers if state is not None else None
        self._refusal = RequestError(ErrorCode.KAFKA_STORAGE_ERROR, failure)
        self._commit_waiters = CommitWaiters()
        self._fetch_waiters = FetchWaiters()
        self._wake_is_due = False
        self._starts = trio.Lock()  # one change of the log start at a time
        self._metrics = services.metrics.topic(spec.topic)

    def __repr__(self) -> str:
        return f"<Replica {self.name} epoch {self.epoch}>"

    @property
    def log(self) -> Log:
        """The log. Raises `RequestError` if there is none."""
        if self._log is None:
            raise self._refusal
        return self._log

    @property
    def is_available(self) -> bool:
        return self._log is not None

    @property
    def log_start(self) -> Offset:
        return self.log.start_offset

    @property
    def log_end(self) -> Offset:
        return self.log.end_offset

    @property
    def size_bytes(self) -> int:
        """Of the stored batches; 0 while they cannot be served."""
        return self._log.size_bytes if self._log is not None else 0

    # Appending

    def produce(self, records: BytesLike | None, *, api_version: int) -> Appended:
        """Append a client's batch, in place: `records` is changed. Raises `RequestError`."""
        log, producers = self.log, self._producers
        assert producers is not None
        now_ms = self._services.clock.now_ms()
        header = admit(records, self.config, api_version=api_version, now_ms=now_ms)
        if header.producer_id >= 0:
            verdict = producers.check(header)
            if isinstance(verdict, Duplicate):
                stamp = verdict.timestamp_ms if self.config.stamps_append_time else NO_TIMESTAMP_MS
                return Appended(verdict.base_offset, verdict.next_offset, stamp)
        assert isinstance(records, memoryview | bytearray)
        base_offset = log.end_offset
        stamp = NO_TIMESTAMP_MS
        if self.config.stamps_append_time:
            stamp = now_ms
            place_log_append_time(records, 0, now_ms)
            header = header._replace(max_timestamp=now_ms)
        place(records, 0, base_offset=base_offset, epoch=self.epoch)
        end_offset = self._append(log, records)
        if header.producer_id >= 0:
            producers.append(header, base_offset, heard_ms=now_ms)
        self._metrics.bytes_in.inc(len(records))
        self._metrics.records_in.inc(header.record_count)
        return Appended(base_offset, end_offset, stamp)

    def append(self, records: bytes) -> Offset:
        """Append a coordinator's batches; where they end, committed or not yet.

        Raises `RequestError`.
        """
        log = self.log
        end_offset = log.end_offset
        placed = bytearray(records)
        for at, header in iter_headers(placed):
            place(placed, at, base_offset=end_offset, epoch=self.epoch)
            end_offset = Offset(end_offset + header.last_offset_delta + 1)
        self._append(log, placed)
        return end_offset

    def _append(self, log: Log, records: bytearray | memoryview) -> Offset:
        try:
            end_offset = log.append(records)
        except (OSError, StorageError, CorruptBatch) as error:
            raise self._storage_error("append", error) from error
        if self.config.syncs_before_ack or log.needs_sync:
            self._services.disk.enqueue(self)
        if not self.config.syncs_before_ack:
            self._commit(end_offset)
        return end_offset

    # Committing

    def when_committed(self, end_offset: Offset, committed: Committed) -> None:
        """Have `committed` called once all below `end_offset` is committed, or never will be."""
        if end_offset <= self.high_watermark:
            committed(None)
        elif self._log is None:
            committed(self._refusal)
        else:
            self._commit_waiters.add(end_offset, committed)

    async def wait_committed(self, end_offset: Offset) -> None:
        """Until all below `end_offset` is committed. Raises `RequestError` if it never will be."""
        done, errors = trio.Event(), list[RequestError]()

        def committed(error: RequestError | None) -> None:
            if error is not None:
                errors.append(error)
            done.set()

        self.when_committed(end_offset, committed)
        await done.wait()
        if errors:
            raise errors[0]

    def begin_sync(self) -> SyncCapture:
        return self.log.begin_sync()

    def synced(self, end_offset: Offset) -> None:
        if self._log is not None:
            self._services.recovery_points.note(self, end_offset)
            self._commit(end_offset)

    def _commit(self, end_offset: Offset) -> None:
        if end_offset <= self.high_watermark:
            return
        self.high_watermark = end_offset
        self._commit_waiters.advance(end_offset)
        if self._fetch_waiters:
            self._wake_later()

    # Reading

    def read(self, offset: Offset, *, bytes_max: int, at_least_one: bool) -> LogSlice:
        """Committed batches from the one that holds `offset` on. Raises `RequestError`."""
        try:
            return self.log.read(
                offset,
                bytes_max=bytes_max,
                end_offset=self.high_watermark,
                at_least_one=at_least_one,
            )
        except (OSError, StorageError, CorruptBatch) as error:
            raise self._storage_error("read", error) from error

    def sent(self, found: LogSlice, offset: Offset) -> None:
        """Count what a fetch from `offset` on got."""
        self._metrics.bytes_out.inc(len(found))
        self._metrics.records_out.inc(found.end_offset - offset)

    def find_timestamp(self, timestamp_ms: int) -> TimestampAndOffset | None:
        """The first committed record with this timestamp or a later one. Raises `RequestError`."""
        try:
            return self.log.find_timestamp(timestamp_ms, end_offset=self.high_watermark)
        except (OSError, StorageError, CorruptBatch) as error:
            raise self._storage_error("search", error) from error

    def max_timestamp(self) -> TimestampAndOffset | None:
        """The first committed record with the largest timestamp. Raises `RequestError`."""
        try:
            return self.log.max_timestamp(end_offset=self.high_watermark)
        except (OSError, StorageError, CorruptBatch) as error:
            raise self._storage_error("search", error) from error

    def check_epoch(self, current_leader_epoch: int) -> None:
        """Fence a client by the epoch it knows; -1 asks for no check. Raises `RequestError`."""
        if current_leader_epoch in (-1, self.epoch):
            return
        code = (
            ErrorCode.FENCED_LEADER_EPOCH
            if current_leader_epoch < self.epoch
            else ErrorCode.UNKNOWN_LEADER_EPOCH
        )
        raise RequestError(code, f"{self.name} is at epoch {self.epoch}")

    def check_offset(self, offset: Offset) -> None:
        """Whether a fetch may begin there: anywhere from the start to the end (F9)."""
        log = self.log
        if not log.start_offset <= offset <= log.end_offset:
            raise RequestError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{self.name} has offsets {log.start_offset} to {log.end_offset}",
            )

    def wait_for_more(self, waiter: FetchWaiter) -> None:
        """Have `waiter` look again whenever the high watermark moves, or the replica closes."""
        self._fetch_waiters.add(waiter)

    def stop_waiting(self, waiter: FetchWaiter) -> None:
        self._fetch_waiters.discard(waiter)

    def release_fetches(self) -> None:
        """Have the parked fetches answered with what there is: the broker is stopping."""
        self._fetch_waiters.release()

    def _wake_later(self) -> None:
        if not self._wake_is_due:
            self._wake_is_due = True
            self._services.turn.after(self._wake)

    def _wake(self) -> None:
        self._wake_is_due = False
        self._fetch_waiters.wake()

    # Changing

    def apply_config(self, config: TopicConfig) -> None:
        """Use `config` from now on, for what is there as well."""
        self.config = config
        if self._log is None:
            return
        self._log.settings = log_settings(config)
        if not config.syncs_before_ack:
            self._commit(self._log.end_offset)

    async def delete_records(self, offset: Offset) -> Offset:
        """Give up all below `offset` (-1: the high watermark); the log start after it.

        Raises `RequestError` OFFSET_OUT_OF_RANGE above the high watermark.
        """
        async with self._starts:
            log = self.log
            if offset == -1:
                offset = self.high_watermark
            if not 0 <= offset <= self.high_watermark:
                raise RequestError(
                    ErrorCode.OFFSET_OUT_OF_RANGE,
                    f"{self.name} has committed up to {self.high_watermark}",
                )
            if offset > log.start_offset:
                try:
                    # Recorded before it takes effect: after a crash the start must not have gone
                    # back.
                    await self._services.record_log_start(self.key, offset)
                    await trio.to_thread.run_sync(self.log.delete_before(offset).run)
                except (OSError, StorageError) as error:
                    raise self._storage_error("delete records", error) from error
            return log.start_offset

    async def apply_retention(self, now_ms: int) -> int:
        """Remove the segments that the config no longer keeps; how many."""
        async with self._starts:
            if self._log is None:
                return 0
            removal = self._log.apply_retention(now_ms, end_offset=self.high_watermark)
            if self._log.needs_sync:
                self._services.disk.enqueue(self)
            if removal:
                await self._services.record_log_start(self.key, self._log.start_offset)
                await trio.to_thread.run_sync(removal.run)
            return len(removal)

    def expire_producers(self, now_ms: int, *, idle_ms: int) -> None:
        if self._producers is not None:
            self._producers.expire(now_ms, idle_ms=idle_ms)

    # Ending

    def retire(self, code: ErrorCode = ErrorCode.NOT_LEADER_OR_FOLLOWER) -> Log | None:
        """Serve nothing any more: whoever waits is answered with `code`, and so is who comes.

        The log is the caller's then, to close or to abandon; `None` if there was none.
        """
        log, self._log = self._log, None
        self._refusal = RequestError(code)
        self._services.disk.forget(self)
        self._services.recovery_points.forget(self)
        self._services.turn.run(self._release_waiters)
        return log

    def _release_waiters(self) -> None:
        self._commit_waiters.fail_all(self._refusal)
        self._fetch_waiters.wake()

    def _storage_error(self, what: str, error: Exception) -> RequestError:
        self._services.storage_failed(f"{self.name}: cannot {what}: {error}")
        return RequestError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.name}: cannot {what}")
