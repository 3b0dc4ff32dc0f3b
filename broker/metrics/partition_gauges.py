"""Gauges of single partitions, as a table."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from prometheus_client.core import GaugeMetricFamily, Metric

from tidemark.broker.metrics.figures import PartitionFigures


class PartitionGauge(NamedTuple):
    """One gauge, and where its number comes from."""

    name: str
    help: str
    value: Callable[[PartitionFigures], float | None]
    """`None`: the partition has no series of it."""


OWN_GAUGES: Final = (
    PartitionGauge(
        "tidemark_partition_log_start_offset",
        "The first offset that can be read.",
        lambda figures: figures.log_start,
    ),
    PartitionGauge(
        "tidemark_partition_high_watermark",
        "Below it, everything is committed and can be read.",
        lambda figures: figures.high_watermark,
    ),
    PartitionGauge(
        "tidemark_partition_log_end_offset",
        "The offset that the next record will get.",
        lambda figures: figures.log_end,
    ),
    PartitionGauge(
        "tidemark_partition_size_bytes",
        "Bytes of the partition's log.",
        lambda figures: figures.size_bytes,
    ),
    PartitionGauge(
        "tidemark_partition_leader_epoch",
        "The leader epoch; it grows whenever the partition is opened anew.",
        lambda figures: figures.epoch,
    ),
    PartitionGauge(
        "tidemark_partition_lag_records",
        "Committed records that the replica here lacks. The leader has no series of it.",
        lambda figures: figures.lag_records,
    ),
    PartitionGauge(
        "tidemark_partition_staleness_seconds",
        "For how long the replica here, a follower or an observer, may have lacked what the leader "
        "has committed.",
        lambda figures: figures.staleness_seconds,
    ),
    PartitionGauge(
        "tidemark_partition_dirty_ratio",
        "How much of a compacted partition's closed segments is new since its last compaction.",
        lambda figures: figures.dirty_ratio,
    ),
    PartitionGauge(
        "tidemark_partition_open_transactions",
        "Transactions that are open in the partition. Where there have been none lately, it has no "
        "series of this and the next two.",
        lambda figures: figures.transactions.open if figures.transactions else None,
    ),
    PartitionGauge(
        "tidemark_partition_oldest_transaction_seconds",
        "For how long the oldest of them has been open. Readers of committed transactions do not "
        "get beyond its beginning.",
        lambda figures: figures.transactions.oldest_seconds if figures.transactions else None,
    ),
    PartitionGauge(
        "tidemark_partition_aborted_transactions",
        "Aborted transactions with records that are not deleted yet; each takes memory until then.",
        lambda figures: figures.transactions.aborted if figures.transactions else None,
    ),
)


def partition_families(
    table: Sequence[PartitionGauge], partitions: Sequence[PartitionFigures]
) -> Iterator[Metric]:
    """A family for each gauge of the table, with a series for each partition."""
    labels = [[figures.topic, str(figures.partition)] for figures in partitions]
    for name, help, value in table:
        family = GaugeMetricFamily(name, help, labels=["topic", "partition"])
        for label, figures in zip(labels, partitions, strict=True):
            number = value(figures)
            if number is not None:
                family.add_metric(label, number)
        yield family
