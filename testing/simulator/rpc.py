"""What clients and brokers say to each other here: Kafka's answers, without the wire's form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.types import NO_EPOCH, NO_OFFSET, Epoch, NodeId, Offset, ProducerId


@dataclass(frozen=True, slots=True)
class Produce:
    """One batch, to be answered when it is committed."""

    request: int
    key: PartitionKey
    batch: bytes


@dataclass(frozen=True, slots=True)
class Produced:
    request: int
    error: ErrorCode
    base_offset: Offset = NO_OFFSET


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Of a producer's transaction, as its coordinator would tell the leader. Answered when the
    marker is written: a coordinator would have it written again until it is."""

    request: int
    key: PartitionKey
    producer_id: ProducerId
    producer_epoch: int


@dataclass(frozen=True, slots=True)
class Fetch:
    request: int
    key: PartitionKey
    offset: Offset
    bytes_max: int
    of_any: bool = False
    """Any replica may answer, with what it knows to be committed."""


@dataclass(frozen=True, slots=True)
class Fetched:
    request: int
    error: ErrorCode
    records: bytes = b""
    high_watermark: Offset = NO_OFFSET
    epoch: Epoch = NO_EPOCH
    log_start: Offset = NO_OFFSET


@dataclass(frozen=True, slots=True)
class WhoLeads:
    request: int
    key: PartitionKey


@dataclass(frozen=True, slots=True)
class Leader:
    request: int
    key: PartitionKey
    node: NodeId | None
    epoch: Epoch


@dataclass(frozen=True, slots=True)
class Ask:
    """Of the leader of a group, as a coordinator or in the layer of transactions."""

    request: int
    key: PartitionKey
    body: object
    """One of `transactions.asking`."""


@dataclass(frozen=True, slots=True)
class Answered:
    request: int
    error: ErrorCode
    value: object = None


Request: TypeAlias = Produce | GiveUp | Fetch | WhoLeads | Ask
Answer: TypeAlias = Produced | Fetched | Leader | Answered
