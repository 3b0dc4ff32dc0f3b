"""What a scrape reads off a running broker, as values. `Figures` is the seam between the two."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from tidemark.protocol.types import Epoch, NodeId, Offset, TopicPartition
from tidemark.protocol.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionFigures:
    """What a partition knows of transactions now."""

    open: int
    oldest_seconds: float | None
    """For how long the oldest has been open; `None` if that is not known."""
    aborted: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionFigures:
    """One partition now."""

    topic: str
    partition: int
    log_start: Offset
    high_watermark: Offset
    log_end: Offset
    size_bytes: int
    epoch: Epoch
    lag_records: int | None = None
    """Behind the leader's high watermark; `None` at the leader itself, or if it is not known."""
    staleness_seconds: float | None = None
    """For how long it may have lacked what the leader has committed; likewise."""
    dirty_ratio: float | None = None
    """How much of what may be compacted was not; `None` where nothing is to be."""
    transactions: TransactionFigures | None = None
    """`None` where there have been none lately."""

    @property
    def key(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


@dataclass(frozen=True, slots=True, kw_only=True)
class LedFigures:
    """The replicas of a partition, as the broker that leads it knows them."""

    replicas: int
    in_sync: int
    is_led_by_preferred: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupFigures:
    """One consumer group now."""

    group: str
    members: int
    committed: Sequence[tuple[TopicPartition, Offset]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How many partitions and groups may have series of their own."""

    partitions_max: int
    groups_max: int


class Figures(Protocol):
    """A running broker, as a scrape sees it. Called from the scrape's thread, so read-only."""

    @property
    def node_id(self) -> NodeId: ...
    @property
    def address(self) -> str: ...

    def partitions(self) -> Sequence[PartitionFigures]:
        """All that have a replica here, those of one topic together and in their order."""
        ...

    def topics(self) -> Mapping[str, int]:
        """All topics of the cluster, and how many partitions each has."""
        ...

    def ends_elsewhere(
        self, partitions: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, Offset]:
        """The high watermarks of these, which have no replica here, as far as they are known."""
        ...

    def led(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, LedFigures]:
        """Of these, those that this broker leads."""
        ...

    def brokers(self) -> int:
        """How many are alive, as far as this one knows."""
        ...

    def groups(self) -> Sequence[GroupFigures]: ...

    def leaderless_partitions(self) -> int:
        """Of those in which this broker has a vote."""
        ...

    def unclean_replicas(self) -> int: ...

    def disk_free_bytes(self) -> int: ...

    def is_disk_full(self) -> bool:
        """Whether clients' records are refused, because hardly any of it is free."""
        ...
