"""How far consumer groups are behind."""

from collections.abc import Mapping, Sequence

from prometheus_client.core import GaugeMetricFamily, Metric

from tidemark.broker.metrics.figures import GroupFigures
from tidemark.protocol.types import Offset, TopicPartition
from tidemark.protocol.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionLag:
    """One group in one partition. Lag is never negative, though a commit may lie ahead."""

    partition: TopicPartition
    committed: Offset
    lag: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupLag:
    """One group. `total` covers all its partitions, `partitions` as many as may be shown."""

    group: str
    members: int
    total: int
    partitions: Sequence[PartitionLag]


def lag_families(
    lags: Sequence[GroupLag], *, committed: tuple[str, str], lag: tuple[str, str], group_label: str
) -> tuple[Metric, Metric]:
    """Committed offset and lag of each group in each partition, under given names and helps."""
    labels = [group_label, "topic", "partition"]
    offsets = GaugeMetricFamily(*committed, labels=labels)
    behind = GaugeMetricFamily(*lag, labels=labels)
    for group in lags:
        for each in group.partitions:
            label = [group.group, each.partition.topic, str(each.partition.partition)]
            offsets.add_metric(label, each.committed)
            behind.add_metric(label, each.lag)
    return offsets, behind


def group_lags(
    groups: Sequence[GroupFigures], ends: Mapping[TopicPartition, Offset], partitions_max: int
) -> list[GroupLag]:
    """The lag of each group behind high watermarks; of their partitions, no more than
    `partitions_max` in all."""
    lags = []
    room = partitions_max
    for figures in groups:
        # A commit to a topic that has been deleted since has no end to be behind of.
        behind = [
            PartitionLag(
                partition=partition, committed=committed, lag=max(0, ends[partition] - committed)
            )
            for partition, committed in figures.committed
            if partition in ends
        ]
        lags.append(
            GroupLag(
                group=figures.group,
                members=figures.members,
                total=sum(each.lag for each in behind),
                partitions=behind[:room],
            )
        )
        room -= len(lags[-1].partitions)
    return lags
