"""Clients' batches: what a replica that leads appends to its log.

Nothing of it is in the core until somebody asks it for something: it hears of all that was appended
in a turn at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from tidemark.partitions.replication.group_log import Appended
from tidemark.partitions.replication.solo import SoloReplica
from tidemark.partitions.state_machines.producers import NOT_PLAIN, Duplicate
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.records.control import Marker, encode_marker
from tidemark.protocol.records.header import (
    LOG_OVERHEAD,
    BatchHeader,
    Fields,
    iter_headers,
    place,
)
from tidemark.protocol.types import Epoch, Offset, Position, ProducerId

# Made for every run of batches: calling the class takes twice the time.
_appended: Final = partial(tuple.__new__, Appended)
_MAX_TIMESTAMP: Final = BatchHeader._fields.index("max_timestamp")
_PRODUCER_ID: Final = BatchHeader._fields.index("producer_id")


class AppendingReplica(SoloReplica):
    """The part of a `GroupReplica` that clients' batches go to."""

    __slots__ = ()

    def append(
        self, header: BatchHeader, records: bytearray | memoryview, now_ms: int
    ) -> Appended | Duplicate:
        """Append a client's batch that was admitted; `records` is changed in place.

        Raises `RequestError` if this replica does not serve, or for what the producer did wrong,
        and `OSError` or `StorageError` for the disk; nothing is appended then.
        """
        if not self.is_accepting:
            raise self._not_serving()
        if header.producer_id >= 0:
            verdict = self._store.producers.table.check(header)
            if isinstance(verdict, Duplicate):
                return verdict
        return self._append((header,), (records,), now_ms)

    def append_next(
        self, fields: Fields, records: bytearray | memoryview, now_ms: int
    ) -> Offset | None:
        """Append a client's batch that was admitted, if `count_plain` counts it, and `None` if not;
        where it ends.

        In one visit what `append_run` of many does in several. Raises as `append` does.
        """
        _, length, _, _, _, attributes, delta, _, timestamp_ms, producer_id, of, first, _ = fields
        table = None
        if producer_id >= 0:
            table = self._store.producers.table
            if (
                # Nearly always it is: then nobody needs to be asked.
                table.awaited != (producer_id, of, first) or attributes & NOT_PLAIN
            ) and not table.is_awaiting(fields):
                return None
        log = self.log
        base_offset, epoch = log.end_offset, self.commits_in
        if epoch is None:
            if not self.is_accepting:
                raise self._not_serving()
            end_offset = self._append_to_group((fields,), (records,))
        else:
            if self._appended_end is None:
                self._touch()  # Else it is touched, and the core has not heard.
            end_offset = log.append_one(records, length, delta, timestamp_ms, epoch)
            self.high_watermark = self._appended_end = end_offset
        if table is not None:
            table.append_awaited(producer_id, of, first, delta, base_offset, timestamp_ms, now_ms)
        return end_offset

    def count_plain(self, headers: Sequence[Fields]) -> int:
        """How many of these batches, from the first on, `append_run` takes."""
        if len(headers) > 1:
            size_bytes = record_count = 0
            for _, length, _, _, _, _, _, _, _, _, _, _, count in headers:
                size_bytes += length + LOG_OVERHEAD
                record_count += count
            if not self.log.has_room_for(size_bytes, record_count, headers[-1][_MAX_TIMESTAMP]):
                headers = headers[:1]
        return self._store.producers.table.count_fresh(headers)

    def append_run(
        self,
        headers: Sequence[Fields],
        batches: Sequence[bytearray | memoryview],
        now_ms: int,
    ) -> Appended:
        """Append clients' batches that were admitted, and counted by `count_plain`, in one write:
        all of them, or none. Raises as `append` does."""
        if not self.is_accepting:
            raise self._not_serving()
        return self._append(headers, batches, now_ms)

    def _append(
        self,
        headers: Sequence[Fields],
        batches: Sequence[bytearray | memoryview],
        now_ms: int,
    ) -> Appended:
        base_offset, epoch = self.log.end_offset, self.commits_in
        if epoch is None:
            epoch = self._group.epoch
            end_offset = self._append_to_group(headers, batches)
        else:
            end_offset = self.log.append_run(batches, headers, epoch)
            self._appended_end = self.high_watermark = end_offset
            self._touch()
        if headers[0][_PRODUCER_ID] >= 0:
            self._store.producers.table.append_run(headers, base_offset, heard_ms=now_ms)
        return _appended((base_offset, end_offset, epoch))

    def _append_to_group(
        self, headers: Sequence[Fields], batches: Sequence[bytearray | memoryview]
    ) -> Offset:
        epoch = self._group.epoch
        end_offset = self._store.append_run(
            headers, batches, epoch, has_followers=not self._is_alone
        )
        self._note_appended(end_offset, epoch)
        return end_offset

    def append_own(self, batches: bytes) -> Appended:
        """Append batches of the broker's own, as they are. Raises as `append` does.

        One in a producer's transaction, which a coordinator writes for it, must not be of an epoch
        that a newer one has replaced; whether its transaction is open is the coordinator's matter.
        """
        if not self.is_accepting:
            raise self._not_serving()
        producers = self._store.producers
        base_offset = offset = self.log.end_offset
        epoch, placed = self._group.epoch, bytearray(batches)
        for at, header in iter_headers(placed):
            if header.producer_id >= 0:
                producer_id = ProducerId(header.producer_id)
                producers.table.check_epoch(producer_id, header.producer_epoch)
            place(placed, at, base_offset=offset, epoch=epoch)
            offset = Offset(offset + header.last_offset_delta + 1)
        end_offset = self._store.append(placed, epoch, has_followers=not self._is_alone)
        # Before anybody hears that they are committed.
        producers.on_run(placed, self._host.now_ms())
        self._note_appended(end_offset, epoch)
        return Appended(base_offset, end_offset, epoch)

    def append_marker(
        self, producer_id: ProducerId, epoch: int, marker: Marker, *, raises_epoch: bool
    ) -> Position:
        """Write the end of a producer's transaction, if the log does not say it already; it is
        true once all up to there is committed.

        Raises as `append` does, and what `ProducerTable.check_marker` raises.
        """
        if not self.is_accepting:
            raise self._not_serving()
        table = self._store.producers.table
        if not table.check_marker(producer_id, epoch, marker, raises_epoch=raises_epoch):
            # What says so may itself be on its way to the others.
            return Position(self._group.epoch, self.log.end_offset)
        now_ms = self._host.now_ms()
        appended = self.append_own(encode_marker(producer_id, epoch, marker, timestamp_ms=now_ms))
        return Position(appended.epoch, appended.end_offset)

    def _note_appended(self, end_offset: Offset, epoch: Epoch) -> None:
        # The core hears of it once, before anything else happens to the group.
        self._appended_end = end_offset
        self._touch()
        if self._is_alone and not self._store.syncs_before_ack:
            self._commit(Position(epoch, end_offset))

    def _not_serving(self) -> RequestError:
        if self.failure is not None:
            what = f"{self._store.name}: {self.failure}"
            return RequestError(ErrorCode.KAFKA_STORAGE_ERROR, what)
        what = f"this broker does not lead {self._store.name}"
        return RequestError(ErrorCode.NOT_LEADER_OR_FOLLOWER, what)

    def pause_writes(self) -> None:
        """Append nothing of clients until `resume_writes`: what was appended is to be committed
        before the lead goes elsewhere."""
        self._end_solo()
        self.is_paused = True

    def resume_writes(self) -> None:
        self.is_paused = False
        self._host.outbox.resumed(self.key)
        self._touch()
