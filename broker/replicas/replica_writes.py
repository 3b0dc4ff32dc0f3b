"""Writing a partition: clients' batches by themselves and in runs, and the broker's own."""

from __future__ import annotations

from collections.abc import Sequence
from errno import ENOSPC
from functools import partial
from typing import Final, NamedTuple, TypeAlias

from tidemark.broker.replicas.admission import admit, admit_fields
from tidemark.broker.replicas.replica_reads import ReadingReplica
from tidemark.broker.replicas.replica_transactions import TransactionalReplica
from tidemark.partitions.replication.group_replica import Appended, GroupReplica
from tidemark.partitions.state_machines.producers import Duplicate
from tidemark.partitions.state_machines.refused_batches import (
    NOT_THE_PRODUCERS_FAULT,
    RefusedBatches,
)
from tidemark.partitions.storage.room import OutOfRoom
from tidemark.protocol.errors import CorruptBatch, RequestError, StorageError
from tidemark.protocol.records.header import (
    TRANSACTIONAL_BIT,
    Fields,
    header_of,
    place_log_append_time,
    read_header,
)
from tidemark.protocol.types import NO_EPOCH, NO_TIMESTAMP_MS, BytesLike, Offset, ProducerId

ProducedRun: TypeAlias = tuple[Sequence[Offset], Offset, int, Offset, bool, RequestError | None]
"""What has become of produced batches that were appended together, if they were: where each lies,
or would lie; the end offset, and they are committed when the high watermark reaches it; the append
time, as in `Produced`; where the log starts; whether they are committed; and why none of them is in
the log. Made and taken apart for every request: with names it would take three times as long."""


class Produced(NamedTuple):
    """Where a produced batch lies. It is committed when the high watermark reaches `end_offset`."""

    base_offset: Offset
    end_offset: Offset
    append_time_ms: int
    """The timestamp the broker gave the records; -1 if they keep their own."""


# Made for every batch: calling the class takes twice the time.
_produced: Final = partial(tuple.__new__, Produced)


def _base_offsets(offset: Offset, headers: Sequence[Fields]) -> list[Offset]:
    """Where batches lie, one behind the other from `offset` on, and where they end."""
    offsets = [offset]
    for _, _, _, _, _, _, _, _, _, _, _, _, record_count in headers:
        offset = Offset(offset + record_count)
        offsets.append(offset)
    return offsets


class WritingReplica(ReadingReplica, TransactionalReplica):
    """The part of `Replica` that batches are appended to."""

    __slots__ = ()

    def produce(self, records: BytesLike | None, *, api_version: int) -> Produced:
        """Append a client's batch, in place: `records` is changed. Raises `RequestError`."""
        member = self._member
        if member is None or not member.is_accepting or self.line:
            raise self.why_not_serving()
        config = self.config
        now_ms = self._services.clock.now_ms()
        header = admit(records, config, api_version=api_version, now_ms=now_ms)
        assert isinstance(records, memoryview | bytearray)
        if member.cut_batches:
            self._note_cut(member, now_ms)
        if self._refused is not None and header.producer_id >= 0:
            self._refused.check(header, member.producers, now_ms, member.epoch)
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
            return Produced(placed.base_offset, placed.next_offset, stamp)
        if is_transactional:
            self.verifications.forget(ProducerId(header.producer_id))
        self._note_produced(member, len(records), header.record_count)
        return _produced((placed.base_offset, placed.end_offset, stamp))

    def produce_run(
        self,
        batches: Sequence[memoryview],
        api_version: int,
        now_ms: int,
        *,
        must_commit: bool,
    ) -> ProducedRun | None:
        """Append clients' batches in one write, from the first on, as many as `produce` would
        append without ado: not what is refused, repeated or in a transaction. `None`: not even the
        first, or what would have to be waited for, if they `must_commit` at once. They are changed
        in place.

        A batch that follows one of its producer that was refused is not what comes next of it: so
        it is in no run, and `produce` says why.
        """
        member = self._member
        if member is None or self.line.waiting:
            return None
        if member.commits_in is None and (must_commit or not member.is_accepting):
            return None
        if len(batches) == 1 and not self.config.stamps_append_time:
            return self._produce_alone(member, batches[0], api_version, now_ms)
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
            headers = [header_of(fields)._replace(max_timestamp=now_ms) for fields in headers]
        base_offsets = _base_offsets(member.log_end, headers)
        end_offset = base_offsets.pop()
        try:
            member.append_run(headers, batches, now_ms)
        except (OSError, StorageError, CorruptBatch) as error:
            refusal = self._storage_error("append", error)
            for records in batches:
                self.refused(records, refusal)
            return base_offsets, end_offset, stamp, member.log.start_offset, False, refusal
        self._note_produced(member, sum(map(len, batches)), end_offset - base_offsets[0])
        is_committed = end_offset <= member.high_watermark
        return base_offsets, end_offset, stamp, member.log.start_offset, is_committed, None

    def _produce_alone(
        self, member: GroupReplica, records: memoryview, api_version: int, now_ms: int
    ) -> ProducedRun | None:
        """As `produce_run`, of one batch that keeps its timestamps, as most do that come alone."""
        base_offset = member.log.end_offset
        try:
            fields = admit_fields(records, self.config, api_version, now_ms)
        except RequestError:
            return None  # What is wrong with it is said once it is decoded.
        try:
            end_offset = member.append_next(fields, records, now_ms)
        except (OSError, StorageError, CorruptBatch) as error:
            refusal = self._storage_error("append", error)
            self.refused(records, refusal)
            log_start = member.log.start_offset
            return (base_offset,), base_offset, NO_TIMESTAMP_MS, log_start, False, refusal
        if end_offset is None:
            return None
        self._note_produced(member, len(records), fields[-1])
        log_start, is_committed = member.log.start_offset, end_offset <= member.high_watermark
        return (base_offset,), end_offset, NO_TIMESTAMP_MS, log_start, is_committed, None

    def _admit_run(
        self, batches: Sequence[memoryview], api_version: int, now_ms: int
    ) -> list[Fields]:
        """The headers of the first of these, as many as may be appended."""
        config = self.config
        headers: list[Fields] = []
        try:
            for records in batches:
                fields = admit_fields(records, config, api_version, now_ms)
                headers.append(fields)
        except RequestError:
            pass  # What is wrong with it is said when it comes first.
        return headers

    def _note_produced(self, member: GroupReplica, size_bytes: int, record_count: int) -> None:
        if member.commits_in is None or self._commit_waiters.waiting or member.log.needs_sync:
            self._services.driver.touch()
        elif self._fetch_waiters.waiting:
            self._wake_later()
        metrics = self._metrics
        metrics.bytes_in.value += size_bytes
        metrics.records_in.value += record_count

    def refused(self, records: BytesLike | None, error: RequestError) -> None:
        """A client's batch was not appended: see `refused_batches`."""
        member = self._member
        if error.code not in NOT_THE_PRODUCERS_FAULT or not records or member is None:
            return
        try:
            header = read_header(records)
        except CorruptBatch:
            return
        now_ms = self._services.clock.now_ms()
        if member.cut_batches:
            self._note_cut(member, now_ms)
        if self._refused is None:
            self._refused = RefusedBatches()
        led_in = member.epoch if member.is_leader else NO_EPOCH
        self._refused.note(header, error.code, now_ms, led_in)

    def _note_cut(self, member: GroupReplica, now_ms: int) -> None:
        """The log does not have any more what it had: see `refused_batches`."""
        if self._refused is None:
            self._refused = RefusedBatches()
        for cut_at_ms, batches in member.cut_batches:
            self._refused.note_cut(batches, cut_at_ms, now_ms)
        member.cut_batches = ()

    def expire_producers(self, now_ms: int, *, idle_ms: int) -> None:
        """Forget those that have been quiet for so long, and refusals that count no more."""
        member = self._member
        if member is None:
            return
        if member.cut_batches:
            self._note_cut(member, now_ms)
        member.producers.expire(now_ms, idle_ms=idle_ms)
        if self._refused is not None:
            self._refused.expire(now_ms)
            if not self._refused:
                self._refused = None

    def append_own(self, batches: bytes) -> Appended:
        """Append batches of the broker's own: a coordinator's, or a command. Raises
        `RequestError`."""
        member = self.member
        if not member.is_serving:
            raise self.why_not_serving()
        try:
            appended = self._append_own(member, batches)
        except (OSError, StorageError, CorruptBatch) as error:
            raise self._storage_error("append", error) from error
        self._services.driver.touch()
        return appended

    def _append_own(self, member: GroupReplica, batches: bytes) -> Appended:
        while True:
            try:
                return member.append_own(batches)
            except OutOfRoom:
                raise
            except OSError as error:
                if error.errno != ENOSPC or not self._services.room.make_room():
                    raise
