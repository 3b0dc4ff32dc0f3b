"""One partition on this broker: appends, the high watermark, and who waits for it.

What the replicas of a partition agree on is their group's (`partitions/replication/`); this is what
clients see of it. Everything runs on the loop's thread. What blocks is awaited, and nothing is half
done across an await.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple
from uuid import UUID

import trio

from tidemark.broker.metrics import TopicMetrics
from tidemark.broker.replicas.admission import admit
from tidemark.broker.replicas.checkpoints import Captured
from tidemark.broker.replicas.leadership import NotLeader
from tidemark.broker.replicas.replica_parts import ReplicaServices, log_settings
from tidemark.broker.replicas.waiters import Committed, CommitWaiters, FetchWaiter, FetchWaiters
from tidemark.partitions.replication.applier import Applier
from tidemark.partitions.replication.group_replica import Appended as OwnAppended
from tidemark.partitions.replication.group_replica import GroupReplica
from tidemark.partitions.replication.outbox import GroupChange
from tidemark.partitions.state_machines.cluster_machine import CLUSTER_TOPIC
from tidemark.partitions.state_machines.producers import Duplicate
from tidemark.partitions.state_machines.topic_configs import TopicConfig
from tidemark.partitions.storage.log import Log
from tidemark.partitions.storage.slices import LogSlice
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.partitions.storage.timestamps import TimestampAndOffset
from tidemark.protocol.errors import CorruptBatch, ErrorCode, RequestError, StorageError
from tidemark.protocol.records.header import place_log_append_time
from tidemark.protocol.types import (
    NO_EPOCH,
    NO_OFFSET,
    NO_TIMESTAMP_MS,
    BytesLike,
    Epoch,
    NodeId,
    Offset,
    TopicPartition,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaSpec:
    """Which partition a replica is of."""

    topic: str
    topic_id: UUID
    partition: int
    config: TopicConfig
    voters: tuple[NodeId, ...] = ()
    """The brokers that hold it, the preferred leader first; none is this broker alone."""
    applier: Applier | None = None
    """The state machine that lives on what is committed, if there is one."""

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


# Made for every batch: calling the class takes twice the time.
_appended: Final = partial(tuple.__new__, Appended)


class Replica:
    """One partition. Made by `opening.open_replicas`; used through `Topics`.

    Invariant: log_start <= high_watermark <= log_end, and the high watermark never goes back while
    this broker leads. Every method that needs the log raises `RequestError` when it is not there:
    NOT_LEADER once the replica is closed, UNKNOWN_TOPIC_OR_PARTITION once it is deleted,
    KAFKA_STORAGE_ERROR while its files cannot be served (`failure` says why).
    """

    def __init__(
        self,
        spec: ReplicaSpec,
        services: ReplicaServices,
        *,
        member: GroupReplica | None,
        failure: str | None = None,
    ) -> None:
        self.topic = spec.topic
        self.topic_id = spec.topic_id
        self.partition = spec.partition
        self.name = str(spec.topic_partition)
        self.key = spec.key
        self.config = spec.config
        self.failure = failure
        """Why the files cannot be served; `None` while they can."""
        self._services = services
        self._member = member
        self._refused_with = ErrorCode.KAFKA_STORAGE_ERROR
        self._epoch = NO_EPOCH
        """The epoch that this broker leads, as its clients were told; -1 while it does not."""
        self._commit_waiters = CommitWaiters()
        self._held_waiters = CommitWaiters()
        self._fetch_waiters = FetchWaiters()
        self._wake_is_due = False
        self._led: trio.Event | None = None
        # The cluster's metadata are no topic of anybody's.
        is_topic = spec.topic != CLUSTER_TOPIC
        self._metrics = services.metrics.topic(spec.topic) if is_topic else TopicMetrics()

    def __repr__(self) -> str:
        return f"<Replica {self.name} epoch {self.epoch}>"

    @property
    def member(self) -> GroupReplica:
        """The group's replica here. Raises `RequestError` if there is none."""
        if self._member is None:
            raise self._refusal
        return self._member

    @property
    def log(self) -> Log:
        """The log. Raises `RequestError` if there is none."""
        return self.member.log

    @property
    def is_available(self) -> bool:
        return self._member is not None

    @property
    def epoch(self) -> Epoch:
        """The newest leader epoch known here; -1 if none is."""
        return self._member.epoch if self._member is not None else NO_EPOCH

    @property
    def leader(self) -> NodeId | None:
        """Who leads the partition, if that is known."""
        return self._member.leader if self._member is not None else None

    @property
    def is_leader(self) -> bool:
        return self._member is not None and self._member.is_leader

    @property
    def is_serving(self) -> bool:
        """Whether this broker leads, and all that was committed before is committed here."""
        return self._member is not None and self._member.is_serving

    @property
    def high_watermark(self) -> Offset:
        return self._member.high_watermark if self._member is not None else Offset(0)

    @property
    def log_start(self) -> Offset:
        if self._member is None:
            raise self._refusal
        return self._member.log.start_offset

    @property
    def log_end(self) -> Offset:
        return self.log.end_offset

    @property
    def size_bytes(self) -> int:
        """Of the stored batches; 0 while they cannot be served."""
        return self._member.log.size_bytes if self._member is not None else 0

    # Leadership

    def check_serving(self) -> None:
        """Raises `RequestError` unless this broker may answer for the partition."""
        if not self.member.is_serving:
            raise self.why_not_serving()

    def check_leads(self) -> None:
        """Raises `RequestError` unless this broker leads, though perhaps not yet serves."""
        if not self.member.is_leader:
            raise self.why_not_serving()

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

    async def wait_leader(self) -> None:
        """Until it is known who leads, and this broker serves if it is the one."""
        while self._member is not None and not self.is_serving and self.leader in (None, self._me):
            self._led = self._led or trio.Event()
            await self._led.wait()

    @property
    def _refusal(self) -> RequestError:
        """What to say where there is no replica any more, or its files cannot be served."""
        return RequestError(self._refused_with, self.failure)

    @property
    def _me(self) -> NodeId:
        return self._services.node_id

    def why_not_serving(self) -> RequestError:
        """What to tell a client that should ask another broker, or this one later."""
        if self._member is None:
            return self._refusal
        member = self._member
        if member.failure is not None:
            return RequestError(ErrorCode.KAFKA_STORAGE_ERROR, member.failure)
        # A leader that does not serve yet is none that a client could be sent to.
        leader = None if member.is_leader else member.leader
        return NotLeader(self.name, leader=leader, epoch=member.epoch)

    # Appending

    def produce(self, records: BytesLike | None, *, api_version: int) -> Appended:
        """Append a client's batch, in place: `records` is changed. Raises `RequestError`."""
        member = self._member
        if member is None or not member.is_accepting:
            raise self.why_not_serving()
        config = self.config
        now_ms = self._services.clock.now_ms()
        header = admit(records, config, api_version=api_version, now_ms=now_ms)
        assert isinstance(records, memoryview | bytearray)
        stamp = NO_TIMESTAMP_MS
        if config.stamps_append_time:
            stamp = now_ms
            place_log_append_time(records, 0, now_ms)
            header = header._replace(max_timestamp=now_ms)
        try:
            placed = member.append(header, records, now_ms)
        except (OSError, StorageError, CorruptBatch) as error:
            raise self._storage_error("append", error) from error
        if isinstance(placed, Duplicate):
            stamp = placed.timestamp_ms if config.stamps_append_time else NO_TIMESTAMP_MS
            return Appended(placed.base_offset, placed.next_offset, stamp)
        if not member.is_solo or self._commit_waiters or member.log.needs_sync:
            self._services.driver.touch()
        elif self._fetch_waiters:
            self._wake_later()
        metrics = self._metrics
        metrics.bytes_in.value += len(records)
        metrics.records_in.value += header.record_count
        return _appended((placed.base_offset, placed.end_offset, stamp))

    def append_own(self, batches: bytes) -> OwnAppended:
        """Append batches of the broker's own: a coordinator's. Raises `RequestError`."""
        member = self.member
        if not member.is_serving:
            raise self.why_not_serving()
        try:
            appended = member.append_own(batches)
        except (OSError, StorageError, CorruptBatch) as error:
            raise self._storage_error("append", error) from error
        self._services.driver.touch()
        return appended

    def check_in_sync(self) -> None:
        """Raises `RequestError` NOT_ENOUGH_REPLICAS if too few voters can be heard from."""
        why = self._why_not_in_sync()
        if why is not None:
            # Who has lost its majority leads no more: its clients are to look for who does.
            self.check_serving()
            raise RequestError(ErrorCode.NOT_ENOUGH_REPLICAS, why)

    def _why_not_in_sync(self) -> str | None:
        wanted = self.config.min_insync_replicas
        if wanted == 1:
            return None
        alive = self._services.driver.alive(self.member.group.config.voters)
        if alive >= wanted:
            return None
        return (
            f"{self.name} has {alive} replicas that can be heard from; min.insync.replicas is "
            f"{wanted}"
        )

    # Committing

    def is_acknowledged(self, end_offset: Offset) -> bool:
        """Whether what was appended up to there has all the replicas that a producer wants."""
        member = self._member
        return (
            member is not None
            and end_offset <= member.high_watermark
            and (not self._wants_more or end_offset <= self._held_end())
        )

    def when_acknowledged(self, end_offset: Offset, done: Committed) -> None:
        """Have `done` called once all below `end_offset` is committed, or never will be.

        Where `min.insync.replicas` is more than a majority, so many have to hold it besides.
        """
        if not self._wants_more:
            self.when_committed(end_offset, done)
        elif not self.is_leader:
            done(self.why_not_serving())
        elif self.is_acknowledged(end_offset):
            done(None)
        else:
            self._held_waiters.add(end_offset, done)
            self._services.driver.watch_held(self)

    def when_committed(self, end_offset: Offset, done: Committed) -> None:
        """Have `done` called once all below `end_offset` is committed, or never will be."""
        if not self.is_leader:
            done(self.why_not_serving())
        elif end_offset <= self.high_watermark:
            done(None)
        else:
            self._commit_waiters.add(end_offset, done)

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

    @property
    def _wants_more(self) -> bool:
        """Whether `min.insync.replicas` is more than a majority."""
        wanted = self.config.min_insync_replicas
        return wanted != 1 and wanted > len(self.member.group.config.voters) // 2 + 1

    def _held_end(self) -> Offset:
        return self.member.group.held_by(self.config.min_insync_replicas).offset

    def look_at_held(self) -> None:
        """For the driver: perhaps more voters hold what a producer waits for, or never will."""
        if self._held_waiters and self.is_leader:
            self._held_waiters.advance(min(self.high_watermark, self._held_end()))
            why = self._why_not_in_sync()
            if why is not None:
                # Committed, so it stays. A producer that repeats it is answered once more hold it.
                error = RequestError(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, why)
                self._held_waiters.fail_below(self.high_watermark, error)
        if not self._held_waiters:
            self._services.driver.stop_watching(self)

    def changed(self, change: GroupChange) -> None:
        """For the driver: what became of the group in the turn that ends."""
        member = self._member
        if member is None:
            return
        if change.leadership or change.serving or change.failed:
            epoch = member.epoch if member.is_leader else NO_EPOCH
            if epoch != self._epoch:
                # Who waited for the leader of an epoch is not told of what another one commits.
                self._epoch = epoch
                self._release_waiters(self.why_not_serving())
            self._wake_who_waits_for_a_leader()
            self._services.leadership.changed(self)
        self._commit_waiters.advance(member.high_watermark)
        if self._fetch_waiters:
            self._wake_later()
        if member.log.needs_sync:
            self._services.checkpoints.save_later(self)

    def capture(self) -> Captured:
        """For a checkpoint: what is to be saved now. Its sync must follow."""
        member = self.member
        return Captured(member.log.begin_sync(), member.state_row(NO_OFFSET))

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

    def wait_for_more(self, waiter: FetchWaiter) -> None:
        """Have `waiter` look again whenever the high watermark or the leader changes."""
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
        if self._member is None:
            return
        self._member.log.settings = log_settings(config)
        if self._member.syncs_before_ack != config.syncs_before_ack:
            self._services.checkpoints.set_flush_later(self, syncs=config.syncs_before_ack)

    def set_flush(self, *, syncs: bool) -> None:
        """For checkpoints, which have written down what has to be known before."""
        member = self._member
        if member is None:
            return
        try:
            member.syncs_before_ack = syncs
        except OSError as error:
            self._services.disk.fail(error)
            return
        self._services.checkpoints.note(self)

    async def delete_records(self, offset: Offset) -> Offset:
        """Give up all below `offset` (-1: the high watermark); the log start after it.

        Raises `RequestError` OFFSET_OUT_OF_RANGE above the high watermark.
        """
        self.check_serving()
        if offset == -1:
            offset = self.high_watermark
        if not 0 <= offset <= self.high_watermark:
            raise RequestError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{self.name} has committed up to {self.high_watermark}",
            )
        if offset > self.log_start:
            driver = self._services.driver
            self.member.move_log_start(offset)
            driver.touch()
            while self.log_start < offset:
                await driver.wait_changed()
                self.check_serving()
            await driver.wait_durable()
        return self.log_start

    def apply_retention(self, now_ms: int) -> None:
        """Give up the segments that the config no longer keeps."""
        if self._member is not None:
            self._member.apply_retention(now_ms)
            if self._member.log.needs_sync:
                self._services.checkpoints.save_later(self)
            self._services.driver.touch()

    def expire_producers(self, now_ms: int, *, idle_ms: int) -> None:
        if self._member is not None:
            self._member.producers.expire(now_ms, idle_ms=idle_ms)

    # Ending

    def delete(self) -> None:
        """The partition is deleted: its files may go away at once."""
        member = self._retire(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        self._services.driver.remove(self.key, is_deleted=True)
        if member is not None:
            member.log.abandon()

    def close(self) -> GroupReplica | None:
        """Serve nothing any more: the broker is ending. The log is the caller's to close."""
        return self._retire(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def _retire(self, code: ErrorCode) -> GroupReplica | None:
        """Whoever waits is answered with `code`, and so is who comes."""
        member, self._member = self._member, None
        self._refused_with, self.failure = code, None
        self._services.driver.stop_watching(self)
        self._services.checkpoints.forget(self)
        self._services.turn.run(self._end)
        return member

    def _end(self) -> None:
        self._release_waiters(self._refusal)
        self._wake_who_waits_for_a_leader()
        self._services.leadership.changed(self)

    def _wake_who_waits_for_a_leader(self) -> None:
        if self._led is not None:
            self._led.set()
            self._led = None

    def _release_waiters(self, error: RequestError) -> None:
        self._commit_waiters.fail_all(error)
        self._held_waiters.fail_all(error)
        self._fetch_waiters.wake()

    def _storage_error(self, what: str, error: Exception) -> RequestError:
        self._services.storage_failed(f"{self.name}: cannot {what}: {error}")
        return RequestError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.name}: cannot {what}")
