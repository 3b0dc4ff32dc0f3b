"""A broker as a scrape sees it, made of values."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from tidemark.broker.metrics import (
    BadInput,
    ConnectionEnd,
    GroupFigures,
    LedFigures,
    Metrics,
    PartitionFigures,
)
from tidemark.protocol.types import Epoch, NodeId, Offset, TopicPartition


def partition(
    topic: str, number: int = 0, *, log_start: int = 0, high_watermark: int = 0
) -> PartitionFigures:
    return PartitionFigures(
        topic=topic,
        partition=number,
        log_start=Offset(log_start),
        high_watermark=Offset(high_watermark),
        log_end=Offset(high_watermark),
        size_bytes=100,
        epoch=Epoch(1),
    )


def group(name: str, committed: Mapping[tuple[str, int], int], *, members: int = 0) -> GroupFigures:
    commits = [(TopicPartition(*where), Offset(offset)) for where, offset in committed.items()]
    return GroupFigures(group=name, members=members, committed=commits)


@dataclass
class Broker:
    """Stands in for a running broker; `Figures` is one of our own seams."""

    all_partitions: Sequence[PartitionFigures] = ()
    all_groups: Sequence[GroupFigures] = ()
    elsewhere: Mapping[str, int] = field(default_factory=dict)
    """Topics with more partitions, or others, than there are replicas here; how many."""
    ends: Mapping[TopicPartition, Offset] = field(default_factory=dict)
    """Of partitions without a replica here."""
    all_led: Mapping[TopicPartition, LedFigures] = field(default_factory=dict)
    node_id: NodeId = NodeId(1)  # noqa: RUF009 # an int
    address: str = "127.0.0.1:9092"

    def partitions(self) -> Sequence[PartitionFigures]:
        return self.all_partitions

    def topics(self) -> Mapping[str, int]:
        counts = Counter(figures.topic for figures in self.all_partitions)
        return {**counts, **self.elsewhere}

    def ends_elsewhere(
        self, partitions: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, Offset]:
        return {each: self.ends[each] for each in partitions if each in self.ends}

    def led(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, LedFigures]:
        return {each: self.all_led[each] for each in partitions if each in self.all_led}

    def brokers(self) -> int:
        return 3

    def groups(self) -> Sequence[GroupFigures]:
        return self.all_groups

    def leaderless_partitions(self) -> int:
        return 1

    def unclean_replicas(self) -> int:
        return 2

    def disk_free_bytes(self) -> int:
        return 1 << 30

    def is_disk_full(self) -> bool:
        return True


def busy_metrics() -> Metrics:
    """Metrics in which everything has been counted once, so that every series is there."""
    metrics = Metrics(topics_max=10)
    for api_key in (0, 1):
        metrics.api(api_key).requests.inc()
        metrics.api(api_key).errors.inc()
        metrics.api(api_key).latency.observe(0.002)
    metrics.topic("a").bytes_in.inc(10)
    metrics.connections_opened.inc(2)
    metrics.connections_closed[ConnectionEnd.BY_CLIENT].inc()
    metrics.bad_input[BadInput.CORRUPT_BATCH].inc()
    metrics.flush.observe(0.001)
    return metrics
