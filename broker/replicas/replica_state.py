"""What is known of one partition on this broker: who leads it, where its log begins and ends."""

from __future__ import annotations

import math
from errno import ENOSPC
from typing import Final
from uuid import UUID

import trio

from tidemark.broker.metrics import TopicMetrics
from tidemark.broker.replicas.held import Line
from tidemark.broker.replicas.leadership import NotLeader
from tidemark.broker.replicas.replica_parts import ReplicaServices
from tidemark.broker.replicas.waiters import NO_COMMIT_WAITERS, NO_FETCH_WAITERS
from tidemark.partitions.replication.applier import Applier
from tidemark.partitions.replication.group_replica import GroupReplica
from tidemark.partitions.state_machines.cluster_machine import CLUSTER_TOPIC
from tidemark.partitions.state_machines.refused_batches import RefusedBatches
from tidemark.partitions.state_machines.topic_configs import TopicConfig
from tidemark.partitions.state_machines.verifications import Verifications
from tidemark.partitions.storage.log import Log
from tidemark.partitions.storage.refusals import may_pass
from tidemark.partitions.storage.room import OutOfRoom
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.types import NO_EPOCH, Epoch, NodeId, Offset, TopicPartition
from tidemark.protocol.values import dataclass

_FAILED_SECONDS: Final = 3.0
"""A replica whose disk was full, say, begins anew within a second."""


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


class ReplicaState:
    """The part of `Replica` that only looks."""

    __slots__ = (
        "_commit_waiters",
        "_epoch",
        "_fetch_waiters",
        "_held_waiters",
        "_led",
        "_member",
        "_metrics",
        "_refused",
        "_refused_with",
        "_services",
        "_verifications",
        "_wake_is_due",
        "bytes_out",
        "config",
        "failure",
        "key",
        "line",
        "may_open_later",
        "partition",
        "topic",
        "topic_id",
    )

    def __init__(
        self,
        spec: ReplicaSpec,
        services: ReplicaServices,
        *,
        member: GroupReplica | None,
        failure: str | None = None,
        may_open_later: bool = False,
    ) -> None:
        self.topic = spec.topic
        self.topic_id = spec.topic_id
        self.partition = spec.partition
        self.key = spec.key if member is None else member.key
        self.config = spec.config
        self.failure = failure
        """Why the files cannot be served; `None` while they can."""
        self.may_open_later = may_open_later
        """Whether that may pass: then another is to be opened in its place."""
        self.bytes_out = 0
        """Bytes of records that clients got from here, for as long as it is open."""
        self._services = services
        self._member = member
        self._refused_with = ErrorCode.KAFKA_STORAGE_ERROR
        self._epoch = NO_EPOCH
        """The epoch that this broker leads, as its clients were told; -1 while it does not."""
        self._refused: RefusedBatches | None = None
        self._verifications: Verifications | None = None
        """Since this broker leads; hardly ever any."""
        self._commit_waiters = self._held_waiters = NO_COMMIT_WAITERS
        self._fetch_waiters = NO_FETCH_WAITERS
        self.line = Line(services.held)
        """Produce requests that are held."""
        self._wake_is_due = False
        self._led: trio.Event | None = None
        # The cluster's metadata are no topic of anybody's.
        is_topic = spec.topic != CLUSTER_TOPIC
        self._metrics = services.metrics.topic(spec.topic) if is_topic else TopicMetrics()

    @property
    def name(self) -> str:
        return str(TopicPartition(self.topic, self.partition))

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
    def last_stable_offset(self) -> Offset:
        """Below it every transaction is decided: so far readers of committed ones may read."""
        member = self._member
        if member is None:
            return Offset(0)
        stable = member.producers.transactions.last_stable_offset(member.high_watermark)
        # A transaction that is open may have lost its first records to a move of the start.
        return max(stable, member.log_start)

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

    def _has_held_waiters(self) -> bool:
        return bool(self._held_waiters)

    @property
    def is_holding(self) -> bool:
        """Whether produce requests are held here."""
        return self._must_hold or bool(self.line)

    @property
    def _must_hold(self) -> bool:
        """Whether the lead is about to go, or has come and is about to count: a client that was
        sent here may be quicker than the followers' confirmation."""
        member = self._member
        return member is not None and (
            member.is_paused or (member.is_leader and not member.is_serving)
        )

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
        """Until it is known who leads, and this broker serves if it is the one; or until it has
        failed, and has not begun anew within some seconds."""
        while self._member is not None and not self.is_serving and self.leader in (None, self._me):
            if self._led is None:
                self._led = trio.Event()
            failure = self._member.failure
            with trio.move_on_after(math.inf if failure is None else _FAILED_SECONDS) as waiting:
                await self._led.wait()
            if waiting.cancelled_caught:
                return

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

    def _storage_error(self, what: str, error: Exception) -> RequestError:
        if isinstance(error, OutOfRoom):
            return RequestError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.name}: {error}")
        if isinstance(error, OSError) and error.errno == ENOSPC:
            self._services.room.look()
        self._services.storage_failed(f"{self.name}: cannot {what}: {error}")
        if what == "append" and isinstance(error, OSError) and not may_pass(error):
            # Where it cannot be written to, another broker had better lead: this one ends, as it
            # would with the next sync.
            self._services.disk.fail(error)
        return RequestError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.name}: cannot {what}")

    def _wake_who_waits_for_a_leader(self) -> None:
        if self._led is not None:
            self._led.set()
            self._led = None
