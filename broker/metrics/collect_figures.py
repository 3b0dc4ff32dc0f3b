"""What the broker looks like at a scrape: sizes, offsets, groups, under our names and
kafka_exporter's.

Labels are bounded. Topics that have no label of their own are summed under `(other)`; partitions
and groups beyond their limits are left out. Families are made once for both sets of names.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from tidemark.broker.metrics.exporter_names import exporter_groups, exporter_topics
from tidemark.broker.metrics.families import gauge, gauges
from tidemark.broker.metrics.figures import Figures, GroupFigures, Limits, PartitionFigures
from tidemark.broker.metrics.group_lag import GroupLag, group_lags, lag_families
from tidemark.broker.metrics.metrics import OTHER, Metrics
from tidemark.broker.metrics.partition_gauges import OWN_GAUGES, partition_families


class FiguresCollector(Collector):
    """The gauges of one running broker."""

    def __init__(self, figures: Figures, metrics: Metrics, limits: Limits) -> None:
        self._figures = figures
        self._metrics = metrics
        self._limits = limits

    def collect(self) -> Iterator[Metric]:
        topics, everything = self._figures.topics(), self._figures.partitions()
        labelled = self._metrics.topics.copy()
        shown = _first_topics(everything, set(labelled), self._limits.partitions_max)
        groups = self._figures.groups()
        lags = self._lags(groups[: self._limits.groups_max], everything)
        yield from self._totals(topics, groups)
        yield from _topic_families(topics, everything, set(labelled))
        yield from partition_families(OWN_GAUGES, shown)
        yield from _group_families(lags)
        yield from exporter_topics(
            self._figures.node_id,
            self._figures.address,
            self._figures.brokers(),
            shown,
            self._figures.led([figures.key for figures in shown]),
        )
        yield from exporter_groups(lags)

    def _lags(
        self, groups: Sequence[GroupFigures], partitions: Sequence[PartitionFigures]
    ) -> list[GroupLag]:
        ends = {figures.key: figures.high_watermark for figures in partitions}
        read = {partition for group in groups for partition, _ in group.committed}
        if elsewhere := read - ends.keys():
            ends.update(self._figures.ends_elsewhere(elsewhere))
        return group_lags(groups, ends, self._limits.partitions_max)

    def _totals(
        self, topics: Mapping[str, int], groups: Sequence[GroupFigures]
    ) -> Iterator[Metric]:
        yield gauge("tidemark_topics", "Topics of the cluster, internal ones too.", len(topics))
        yield gauge("tidemark_partitions", "Partitions of all of them.", sum(topics.values()))
        yield gauge("tidemark_groups", "Consumer groups that this broker coordinates.", len(groups))
        yield gauge(
            "tidemark_leaderless_partitions",
            "Partitions with a vote of this broker, and without a leader that it knows of.",
            self._figures.leaderless_partitions(),
        )
        yield gauge(
            "tidemark_unclean_replicas",
            "Replicas here that may have lost something, and do not count until they hold it.",
            self._figures.unclean_replicas(),
        )
        yield gauge(
            "tidemark_data_dir_free_bytes",
            "Free space on the disk of the data directory.",
            self._figures.disk_free_bytes(),
        )
        yield gauge(
            "tidemark_data_dir_full",
            "1 while produce requests are refused because that disk is nearly full, else 0.",
            self._figures.is_disk_full(),
        )


def _first_topics(
    partitions: Sequence[PartitionFigures], labelled: set[str], partitions_max: int
) -> list[PartitionFigures]:
    """The partitions of those topics with labels that fit, each topic whole or not at all."""
    by_topic: defaultdict[str, list[PartitionFigures]] = defaultdict(list)
    for figures in partitions:
        if figures.topic in labelled:
            by_topic[figures.topic].append(figures)
    shown: list[PartitionFigures] = []
    for of_topic in by_topic.values():
        if len(shown) + len(of_topic) <= partitions_max:
            shown.extend(of_topic)
    return shown


def _topic_families(
    topics: Mapping[str, int], partitions: Sequence[PartitionFigures], labelled: set[str]
) -> Iterator[Metric]:
    sizes: defaultdict[str, float] = defaultdict(float)
    for figures in partitions:
        sizes[figures.topic if figures.topic in labelled else OTHER] += figures.size_bytes
    counts: defaultdict[str, float] = defaultdict(float)
    # A topic that was deleted a moment ago still has its replicas here.
    for topic in {figures.topic for figures in partitions} & topics.keys():
        counts[topic if topic in labelled else OTHER] += topics[topic]
    yield gauges(
        "tidemark_topic_size_bytes", "Bytes of a topic's logs on this broker.", "topic", sizes
    )
    yield gauges(
        "tidemark_topic_partitions",
        "Partitions of a topic, wherever they are; of topics with a replica here.",
        "topic",
        counts,
    )


def _group_families(lags: Sequence[GroupLag]) -> Iterator[Metric]:
    members = {lag.group: float(lag.members) for lag in lags}
    yield gauges("tidemark_group_members", "Members of a group.", "group", members)
    totals = {lag.group: float(lag.total) for lag in lags}
    yield gauges(
        "tidemark_group_lag_sum",
        "Records that a group has not committed yet, in all its partitions.",
        "group",
        totals,
    )
    yield from lag_families(
        lags,
        committed=(
            "tidemark_group_committed_offset",
            "The offset a group has committed: the next one it will read.",
        ),
        lag=(
            "tidemark_group_lag",
            "Records between a group's committed offset and the high watermark.",
        ),
        group_label="group",
    )
