"""The same numbers under the names of kafka_exporter, so that dashboards made for it light up.

Its replica gauges are constant here: one broker has one replica of everything, always in sync.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from prometheus_client.core import GaugeMetricFamily, Metric

from tidemark.broker.metrics.families import gauge, gauges
from tidemark.broker.metrics.figures import PartitionFigures
from tidemark.broker.metrics.group_lag import GroupLag, lag_families
from tidemark.broker.metrics.partition_gauges import PartitionGauge, partition_families
from tidemark.protocol.types import NodeId

_PREFIX: Final = "kafka_topic_partition_"


def exporter_topics(
    node_id: NodeId, address: str, partitions: Sequence[PartitionFigures]
) -> Iterator[Metric]:
    """Brokers, topics and partitions."""
    yield gauge("kafka_brokers", "Brokers in the cluster.", 1)
    broker = GaugeMetricFamily("kafka_broker_info", "A broker.", labels=["id", "address"])
    broker.add_metric([str(node_id), address], 1)
    yield broker
    counts = {name: float(count) for name, count in _partition_counts(partitions).items()}
    yield gauges("kafka_topic_partitions", "Partitions of a topic.", "topic", counts)
    yield from partition_families(_partition_gauges(node_id), partitions)


def _partition_counts(partitions: Sequence[PartitionFigures]) -> Counter[str]:
    return Counter(figures.topic for figures in partitions)


def _partition_gauges(node_id: NodeId) -> list[PartitionGauge]:
    return [
        PartitionGauge(
            f"{_PREFIX}current_offset",
            "The high watermark.",
            lambda figures: figures.high_watermark,
        ),
        PartitionGauge(
            f"{_PREFIX}oldest_offset", "The log start offset.", lambda figures: figures.log_start
        ),
        PartitionGauge(f"{_PREFIX}leader", "The number of the leader.", lambda _: node_id),
        PartitionGauge(f"{_PREFIX}leader_is_preferred", "1 if it is the preferred.", lambda _: 1),
        PartitionGauge(f"{_PREFIX}replicas", "Replicas.", lambda _: 1),
        PartitionGauge(f"{_PREFIX}in_sync_replica", "Replicas in sync.", lambda _: 1),
        PartitionGauge(f"{_PREFIX}under_replicated_partition", "1 if one is not.", lambda _: 0),
    ]


def exporter_groups(lags: Sequence[GroupLag]) -> Iterator[Metric]:
    """Consumer groups."""
    members = {lag.group: float(lag.members) for lag in lags}
    yield gauges("kafka_consumergroup_members", "Members of a group.", "consumergroup", members)
    yield from lag_families(
        lags,
        committed=("kafka_consumergroup_current_offset", "The committed offset of a group."),
        lag=("kafka_consumergroup_lag", "The lag of a group."),
        group_label="consumergroup",
    )
    yield from _sums(lags)


def _sums(lags: Sequence[GroupLag]) -> Iterator[Metric]:
    labels = ["consumergroup", "topic"]
    committed = GaugeMetricFamily(
        "kafka_consumergroup_current_offset_sum",
        "The committed offsets of a group in a topic, added up.",
        labels=labels,
    )
    behind = GaugeMetricFamily(
        "kafka_consumergroup_lag_sum", "The lag of a group in a topic.", labels=labels
    )
    sums: defaultdict[tuple[str, str], tuple[int, int]] = defaultdict(lambda: (0, 0))
    for group in lags:
        for each in group.partitions:
            offset, lag = sums[group.group, each.partition.topic]
            sums[group.group, each.partition.topic] = (offset + each.committed, lag + each.lag)
    for label, (offset, lag) in sums.items():
        committed.add_metric(label, offset)
        behind.add_metric(label, lag)
    yield committed
    yield behind
