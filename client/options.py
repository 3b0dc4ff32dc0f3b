"""The keyword arguments of `Client.producer` and `Client.consumer`, for those who pass them on."""

from collections.abc import Mapping, Sequence
from typing import Literal, TypedDict

from tidemark.client.group_settings import Rebalanced
from tidemark.client.offsets import Isolation, Start
from tidemark.client.partitioner import Partitioner
from tidemark.client.read_levels import ReadLevel
from tidemark.protocol.records.compression import Compression
from tidemark.protocol.types import TopicPartition


class ProducerOptions(TypedDict, total=False):
    """See `Client.producer`."""

    acks: Literal["all", 0, 1, -1]
    idempotent: bool | None
    compression: Compression | str
    linger_ms: float
    batch_bytes: int
    request_bytes_max: int
    buffer_bytes: int
    max_in_flight: int
    delivery_timeout_seconds: float
    partitioner: Partitioner
    transactional_id: str | None
    transaction_timeout_seconds: float


class ConsumerOptions(TypedDict, total=False):
    """See `Client.consumer`."""

    group: str | None
    instance_id: str | None
    start: Start | str | int | Mapping[TopicPartition, Start | str | int]
    out_of_range: Literal["error", "beginning", "end"]
    until_end: bool
    isolation: Isolation | str
    read_level: ReadLevel | str | None
    fetch_min_bytes: int
    fetch_max_wait_ms: int
    fetch_bytes: int
    partition_bytes: int
    prefetch_bytes: int
    auto_commit_seconds: float | None
    assignors: Sequence[str]
    session_timeout_seconds: float
    rebalance_timeout_seconds: float
    heartbeat_seconds: float
    on_assigned: Rebalanced | None
    on_revoked: Rebalanced | None
