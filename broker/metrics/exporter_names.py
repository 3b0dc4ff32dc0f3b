"""The same numbers under the names of kafka_exporter, so that dashboards made for it light up.

kafka_exporter speaks for a whole cluster. Here all brokers are scraped, and each has series of the
partitions that it leads: together they are what kafka_exporter shows, each partition once.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from prometheus_client.core import GaugeMetricFamily, Metric

from tidemark.broker.metrics.families import gauge, gauges
from tidemark.broker.metrics.figures import LedFigures, PartitionFigures
from tidemark.broker.metrics.group_lag import GroupLag, lag_families
from tidemark.broker.metrics.partition_gauges import PartitionGauge, partition_families
from tidemark.protocol.types import NodeId, TopicPartition

_PREFIX: Final = "kafka_topic_partition_"


def exporter_topics(
    node_id: NodeId,
    address: str,
    brokers: int,
    partitions: Sequence[PartitionFigures],
    led: Mapping[TopicPartition, LedFigures],
) -> Iterator[Metric]:
    """Brokers, and of these partitions those that are `led` here."""
    yield gauge("kafka_brokers", "Brokers of the cluster that are up.", brokers)
    broker = GaugeMetricFamily("kafka_broker_info", "This broker.", labels=["id", "address"])
    broker.add_metric([str(node_id), address], 1)
    yield broker
    shown = [figures for figures in partitions if figures.key in led]
    counts = Counter(figures.topic for figures in shown)
    yield gauges(
        "kafka_topic_partitions", "Partitions of a topic that this broker leads.", "topic", counts
    )
    yield from partition_families(_partition_gauges(node_id, led), shown)


def _partition_gauges(
    node_id: NodeId, led: Mapping[TopicPartition, LedFigures]
) -> list[PartitionGauge]:
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
        PartitionGauge(
            f"{_PREFIX}leader_is_preferred",
            "1 if it is the preferred.",
            lambda figures: led[figures.key].is_led_by_preferred,
        ),
        PartitionGauge(
            f"{_PREFIX}replicas", "Replicas.", lambda figures: led[figures.key].replicas
        ),
        PartitionGauge(
            f"{_PREFIX}in_sync_replica",
            "Replicas in sync.",
            lambda figures: led[figures.key].in_sync,
        ),
        PartitionGauge(
            f"{_PREFIX}under_replicated_partition",
            "1 if one is not.",
            lambda figures: led[figures.key].in_sync < led[figures.key].replicas,
        ),
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
