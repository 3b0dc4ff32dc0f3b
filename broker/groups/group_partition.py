"""One partition of `__consumer_offsets` at work: its groups, its log, and its clock.

It lasts as long as this broker leads the partition in one epoch. The state machine says what to
answer and what to write; this carries it out.
"""

from __future__ import annotations

from functools import partial

from tidemark.broker.coordinating.own_log import encoded
from tidemark.broker.coordinating.working_partition import WorkingPartition
from tidemark.broker.network.timers import Timers
from tidemark.broker.node import Clock
from tidemark.broker.replicas.replica import Replica
from tidemark.partitions.state_machines.groups.effects import Effects, Write
from tidemark.partitions.state_machines.groups.records import encode_record
from tidemark.partitions.state_machines.groups.requests import Heartbeat, Request
from tidemark.partitions.state_machines.groups.shard import GroupShard
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.records.records import Record, encode_batch
from tidemark.protocol.types import ProducerId


class GroupPartition(WorkingPartition[Request, Effects]):
    """The groups of one partition, served. All of it runs on the loop's thread."""

    def __init__(
        self,
        shard: GroupShard,
        replica: Replica,
        *,
        timers: Timers,
        clock: Clock,
        batch_bytes_max: int,
    ) -> None:
        super().__init__(
            shard, replica, timers=timers, clock=clock, batch_bytes_max=batch_bytes_max
        )
        self.shard = shard
        self.replica = replica
        self._wake_in_time()

    def heartbeat(self, request: Heartbeat) -> ErrorCode:
        error = self.shard.heartbeat(request, self.now())
        self._wake_in_time()
        return error

    def expire_offsets(self) -> None:
        self._perform(self.shard.expire_offsets(self.now()))

    def forget_topics(self, topics: frozenset[str]) -> None:
        self._perform(self.shard.forget_topics(topics, self.now()))

    def end_transaction(self, producer_id: ProducerId, *, is_commit: bool) -> None:
        """Its marker is committed, and all that was appended before it."""
        self._perform(self.shard.end_transaction(producer_id, self.now(), is_commit=is_commit))

    def resign(self) -> None:
        """Send everybody away who waits; what is on its way to the log is nobody's any more."""
        self._log.give_up()
        self._perform(self.shard.resign(self.now()))

    def _perform(self, effects: Effects) -> None:
        self._answer(effects.replies)
        for write in effects.writes:
            self._log.append(write.number, encoded(partial(self._encoded, write)))
        self._log.flush()
        self._wake_in_time()

    def _encoded(self, write: Write) -> bytes:
        timestamp_ms = self._clock.now_ms()
        records = [
            Record(timestamp_ms=timestamp_ms, key=key, value=value)
            for key, value in map(encode_record, write.records)
        ]
        if write.producer is None:
            return encode_batch(records)
        return encode_batch(
            records,
            producer_id=write.producer.id,
            producer_epoch=write.producer.epoch,
            is_transactional=True,
        )
