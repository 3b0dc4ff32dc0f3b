"""Compaction, at a scrape."""

from collections.abc import Iterator

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from tidemark.broker.metrics.compaction_counts import CompactionMetrics
from tidemark.broker.metrics.families import counter, gauge, gauges_of_partitions, histogram


class CompactionCollector(Collector):
    """The families of a `CompactionMetrics`."""

    def __init__(self, compaction: CompactionMetrics) -> None:
        self._compaction = compaction

    def collect(self) -> Iterator[Metric]:
        compaction = self._compaction
        yield counter("tidemark_compactions", "Runs that came to their end.", compaction.runs)
        yield counter(
            "tidemark_compaction_failures",
            "Runs, and looks at a log, that failed: the log says of which partition and why.",
            compaction.failures,
        )
        yield counter(
            "tidemark_compaction_read_bytes",
            "Bytes of the segments that were written anew, as they were.",
            compaction.read_bytes,
        )
        yield counter(
            "tidemark_compaction_written_bytes",
            "Bytes of the new segments: what is missing to those that were read was freed.",
            compaction.written_bytes,
        )
        yield counter(
            "tidemark_compaction_removed_records",
            "Records that a later one with their key has replaced, or a deletion.",
            compaction.removed_records,
        )
        yield histogram(
            "tidemark_compaction_duration_seconds",
            "How long a run over one log took.",
            compaction.duration,
        )
        yield gauge(
            "tidemark_compaction_last_run_timestamp_seconds",
            "When the last run ended that came to its end, since 1970; 0 if there was none.",
            compaction.last_run_seconds,
        )
        yield gauges_of_partitions(
            "tidemark_compaction_set_aside",
            "1 for each partition that cannot be compacted now, and grows.",
            dict.fromkeys(compaction.set_aside.copy(), 1.0),
        )
        yield gauges_of_partitions(
            "tidemark_compaction_unreadable_batches",
            "Batches that a partition's last run left as they are, because nothing in them can be "
            "read: `tidemark log verify` names them.",
            {name: float(count) for name, count in compaction.unreadable_batches.copy().items()},
        )
