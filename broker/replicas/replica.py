"""One partition on this broker: appends, the high watermark, and who waits for it.

What the replicas of a partition agree on is their group's (`partitions/replication/`); this is what
clients see of it. Everything runs on the loop's thread. What blocks is awaited, and nothing is half
done across an await.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final, NamedTuple

from tidemark.broker.replicas.admission import admit
from tidemark.broker.replicas.replica_commits import CommittingReplica
from tidemark.broker.replicas.replica_parts import log_settings
from tidemark.broker.replicas.replica_reads import ReadingReplica
from tidemark.broker.replicas.replica_state import ReplicaSpec
from tidemark.broker.replicas.replica_transactions import TransactionalReplica
from tidemark.partitions.replication.group_replica import Appended as OwnAppended
from tidemark.partitions.replication.group_replica import GroupReplica
from tidemark.partitions.replication.outbox import GroupChange
from tidemark.partitions.state_machines.producers import Duplicate
from tidemark.partitions.state_machines.refused_batches import (
    NOT_THE_PRODUCERS_FAULT,
    RefusedBatches,
)
from tidemark.partitions.state_machines.topic_configs import TopicConfig
from tidemark.protocol.errors import CorruptBatch, ErrorCode, RequestError, StorageError
from tidemark.protocol.records.header import (
    TRANSACTIONAL_BIT,
    BatchHeader,
    place_log_append_time,
    read_header,
)
from tidemark.protocol.types import NO_EPOCH, NO_TIMESTAMP_MS, BytesLike, Epoch, Offset, ProducerId

__all__ = ["Appended", "Replica", "ReplicaSpec"]


class Run(NamedTuple):
    """What has become of produced batches that were appended together, if they were."""

    base_offsets: list[Offset]
    """Where each lies, or would lie."""
    end_offset: Offset
    """They are committed when the high watermark reaches it."""
    append_time_ms: int
    """As in `Appended`."""
    error: RequestError | None
    """Why none of them is in the log."""


class Appended(NamedTuple):
    """Where a produced batch lies. It is committed when the high watermark reaches `end_offset`."""

    base_offset: Offset
    end_offset: Offset
    append_time_ms: int
    """The timestamp the broker gave the records; -1 if they keep their own."""


# Made for every batch: calling the class takes twice the time.
_appended: Final = partial(tuple.__new__, Appended)
_run: Final = partial(tuple.__new__, Run)


def _base_offsets(offset: Offset, headers: Sequence[BatchHeader]) -> list[Offset]:
    """Where batches lie, one behind the other from `offset` on, and where they end."""
    offsets = [offset]
    for header in headers:
        offset = Offset(offset + header.record_count)
        offsets.append(offset)
    return offsets


class Replica(CommittingReplica, ReadingReplica, TransactionalReplica):
    """One partition. Made by `opening.open_replicas`; used through `Topics`.

    Invariant: log_start <= high_watermark <= log_end, and the high watermark never goes back while
    this broker leads. Every method that needs the log raises `RequestError` when it is not there:
    NOT_LEADER once the replica is closed, UNKNOWN_TOPIC_OR_PARTITION once it is deleted,
    KAFKA_STORAGE_ERROR while its files cannot be served (`failure` says why).
    """

    __slots__ = ()

    # Appending

    def produce(self, records: BytesLike | None, *, api_version: int) -> Appended:
        """Append a client's batch, in place: `records` is changed. Raises `RequestError`."""
        member = self._member
        if member is None or not member.is_accepting or self.line:
            raise self.why_not_serving()
        config = self.config
        now_ms = self._services.clock.now_ms()
        header = admit(records, config, api_version=api_version, now_ms=now_ms)
        assert isinstance(records, memoryview | bytearray)
        if self._refused is not None:
            self._refused.check(header, member.producers, now_ms)
        is_transactional = header.attributes & TRANSACTIONAL_BIT
        if is_transactional:
            self.check_verified(header, api_version)
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
        if is_transactional:
            self.verifications.forget(ProducerId(header.producer_id))
        self._note_produced(member, len(records), header.record_count)
        return _appended((placed.base_offset, placed.end_offset, stamp))

    def produce_run(self, batches: Sequence[memoryview], *, api_version: int) -> Run | None:
        """Append clients' batches in one write, from the first on, as many as `produce` would
        append without ado: not what is refused, repeated or in a transaction. `None`: not even the
        first. They are changed in place.

        A batch that follows one of its producer that was refused is not what comes next of it: so
        it is in no run, and `produce` says why.
        """
        member = self._member
        if member is None or self.line or not member.is_accepting:
            return None
        now_ms = self._services.clock.now_ms()
        headers = self._admit_run(batches, api_version, now_ms)
        count = member.count_plain(headers) if headers else 0
        if count == 0:
            return None
        if count < len(batches):
            headers, batches = headers[:count], batches[:count]
        stamp = NO_TIMESTAMP_MS
        if self.config.stamps_append_time:
            stamp = now_ms
            for records in batches:
                place_log_append_time(records, 0, now_ms)
            headers = [header._replace(max_timestamp=now_ms) for header in headers]
        base_offsets = _base_offsets(member.log_end, headers)
        end_offset = base_offsets.pop()
        try:
            member.append_run(headers, batches, now_ms)
        except (OSError, StorageError, CorruptBatch) as error:
            refusal = self._storage_error("append", error)
            for records in batches:
                self.refused(records, refusal)
            return _run((base_offsets, end_offset, stamp, refusal))
        self._note_produced(member, sum(map(len, batches)), end_offset - base_offsets[0])
        return _run((base_offsets, end_offset, stamp, None))

    def _admit_run(
        self, batches: Sequence[memoryview], api_version: int, now_ms: int
    ) -> list[BatchHeader]:
        """The headers of the first of these, as many as may be appended."""
        config, headers = self.config, list[BatchHeader]()
        try:
            for records in batches:
                headers.append(admit(records, config, api_version=api_version, now_ms=now_ms))
        except RequestError:
            pass  # What is wrong with it is said when it comes first.
        return headers

    def _note_produced(self, member: GroupReplica, size_bytes: int, record_count: int) -> None:
        if not member.is_solo or self._commit_waiters or member.log.needs_sync:
            self._services.driver.touch()
        elif self._fetch_waiters:
            self._wake_later()
        metrics = self._metrics
        metrics.bytes_in.value += size_bytes
        metrics.records_in.value += record_count

    def refused(self, records: BytesLike | None, error: RequestError) -> None:
        """A client's batch was not appended: see `refused_batches`."""
        member = self._member
        if error.code not in NOT_THE_PRODUCERS_FAULT or not records or not self.is_leader:
            return
        try:
            header = read_header(records)
        except CorruptBatch:
            return
        assert member is not None, "who leads is there"
        self._refused = self._refused or RefusedBatches()
        self._refused.note(header, error, member.producers, self._services.clock.now_ms())

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

    def changed(self, change: GroupChange) -> None:
        member = self._member
        if member is None:
            return
        if change.leadership or change.serving or change.failed:
            epoch = member.epoch if member.is_leader else NO_EPOCH
            if epoch != self._epoch:
                # Who waited for the leader of an epoch is not told of what another one commits.
                self._epoch = epoch
                self._refused = self._verifications = None
                self._release_waiters(self.why_not_serving())
            self._wake_who_waits_for_a_leader()
            self._services.leadership.changed(self)
        self._commit_waiters.advance(member.high_watermark)
        if self._fetch_waiters:
            self._wake_later()
        if member.log.needs_sync:
            self._services.checkpoints.save_later(self)
        if self.line and not self._must_hold:
            self.line.release()

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

    def give_up(self) -> Epoch:
        """Other brokers hold the partition now: its files here may go away at once.

        Returns the epoch that is to be remembered: it has promised nothing in later ones.
        """
        member = self._retire(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        self._services.driver.remove(self.key, is_deleted=True, lives_on=True)
        if member is None:
            return NO_EPOCH
        member.log.abandon()
        self._services.checkpoints.leave(self.key, member.epoch)
        return member.epoch

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
        self.line.release()
        self._wake_who_waits_for_a_leader()
        self._services.leadership.changed(self)

    def _release_waiters(self, error: RequestError) -> None:
        self._commit_waiters.fail_all(error)
        self._held_waiters.fail_all(error)
        self._fetch_waiters.wake()
