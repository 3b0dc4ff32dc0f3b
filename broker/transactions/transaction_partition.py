"""One partition of `__transaction_state` at work: its ids, its log, its clock, and its markers.

It lasts as long as this broker leads the partition in one epoch, which its markers carry. The state
machine says what to answer, what to write and what to tell the partitions of a transaction; this
carries it out.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Protocol

from tidemark.broker.coordinating.own_log import encoded
from tidemark.broker.coordinating.working_partition import WorkingPartition
from tidemark.broker.metrics.transaction_counts import TransactionMetrics
from tidemark.broker.network.timers import Timers
from tidemark.broker.node import Clock
from tidemark.broker.replicas.replica import Replica
from tidemark.partitions.state_machines.transactions.effects import Effects, Markers, Write
from tidemark.partitions.state_machines.transactions.records import encode_record
from tidemark.partitions.state_machines.transactions.requests import Request
from tidemark.partitions.state_machines.transactions.settings import TransactionSettings
from tidemark.partitions.state_machines.transactions.shard import TransactionShard
from tidemark.partitions.state_machines.transactions.transaction import Transaction
from tidemark.protocol.records.records import Record, encode_batch
from tidemark.protocol.types import Epoch, TopicPartition


class MarkersOwner(Protocol):
    """Whose markers are sent."""

    @property
    def is_current(self) -> bool: ...

    @property
    def epoch(self) -> Epoch:
        """Which the markers carry."""
        ...

    def marked(self, markers: Markers, partition: TopicPartition) -> None:
        """That partition has its marker, or is no more."""
        ...


class Sender(Protocol):
    def send(self, owner: MarkersOwner, markers: Markers) -> None:
        """Until each partition has its own, or the owner is not current any more."""
        ...


class TransactionPartition(WorkingPartition[Request, Effects]):
    """The transactional ids of one partition, served. All of it runs on the loop's thread."""

    def __init__(
        self,
        replica: Replica,
        settings: TransactionSettings,
        values: Mapping[str, Transaction],
        sender: Sender,
        *,
        timers: Timers,
        clock: Clock,
        metrics: TransactionMetrics,
        batch_bytes_max: int,
    ) -> None:
        self.shard = TransactionShard(settings)
        super().__init__(
            self.shard, replica, timers=timers, clock=clock, batch_bytes_max=batch_bytes_max
        )
        self.epoch = replica.epoch
        self._sender = sender
        self._metrics = metrics
        self._has_resigned = False
        # Markers of what was decided are sent again.
        self._perform(self.shard.restore(values, self.now()))

    @property
    def is_current(self) -> bool:
        """Whether the leadership still lasts in which these ids were read."""
        return not self._has_resigned and super().is_current

    def marked(self, markers: Markers, partition: TopicPartition) -> None:
        if self.is_current:
            self._perform(self.shard.marked(markers, frozenset({partition}), self.now()))

    def expire_ids(self) -> None:
        self._perform(self.shard.expire_ids(self.now()))

    def resign(self) -> None:
        """Send everybody away who waits; what is on its way to the log is nobody's any more."""
        self._has_resigned = True
        self._log.give_up()
        self._perform(self.shard.resign())

    def _perform(self, effects: Effects) -> None:
        self._answer(effects.replies)
        for write in effects.writes:
            self._log.append(write.number, encoded(partial(self._encoded, write)))
            if write.value is not None and write.value.state.is_prepared:
                (
                    self._metrics.commits if write.value.state.is_commit else self._metrics.aborts
                ).inc()
        self._log.flush()
        for markers in effects.markers:
            self._sender.send(self, markers)
        self._wake_in_time()

    def _encoded(self, write: Write) -> bytes:
        key, value = encode_record(write.transactional_id, write.value)
        return encode_batch([Record(timestamp_ms=self._clock.now_ms(), key=key, value=value)])
