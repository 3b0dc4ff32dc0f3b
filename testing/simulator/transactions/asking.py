"""What clients and brokers ask of coordinators and leaders; most of it in the machines' words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from tidemark.partitions.state_machines.groups.requests import (
    Commit,
    ConsumerHeartbeat,
    Heartbeat,
    Join,
    Leave,
    Sync,
)
from tidemark.partitions.state_machines.transactions.requests import Add, End, Init
from tidemark.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
)
from tidemark.protocol.messages.write_txn_markers import (
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from tidemark.protocol.types import Offset, ProducerId, TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class ProduceInTransaction:
    """One batch, which is answered when it is committed."""

    transactional_id: str
    partition: TopicPartition
    batch: bytes
    adds: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitInTransaction:
    """TxnOffsetCommit."""

    transactional_id: str
    commit: Commit
    adds: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchOffset:
    """OffsetFetch of one partition, that requires a stable one."""

    group_id: str
    partition: TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """A fetch from a leader."""

    offset: Offset
    bytes_max: int
    isolation: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What was read."""

    records: bytes
    end_offset: Offset
    """How far the reader may read at the moment."""
    aborted: tuple[tuple[ProducerId, Offset], ...] = ()


Body: TypeAlias = (
    Init
    | Add
    | End
    | Commit
    | Join
    | Sync
    | Leave
    | Heartbeat
    | ConsumerHeartbeat
    | ProduceInTransaction
    | CommitInTransaction
    | FetchOffset
    | Read
)
BetweenBrokers: TypeAlias = WriteTxnMarkersRequest | AddPartitionsToTxnRequest
AnswerBetweenBrokers: TypeAlias = WriteTxnMarkersResponse | AddPartitionsToTxnResponse
