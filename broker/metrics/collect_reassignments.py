"""Replicas that move, of the partitions that this broker leads."""

from collections.abc import Iterator

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from tidemark.broker.metrics.families import counter, gauge, gauges, histogram
from tidemark.broker.metrics.reassignment_counts import ReassignmentMetrics


class ReassignmentsCollector(Collector):
    """The families of a `ReassignmentMetrics`."""

    def __init__(self, reassignments: ReassignmentMetrics) -> None:
        self._reassignments = reassignments

    def collect(self) -> Iterator[Metric]:
        reassignments = self._reassignments
        yield gauges(
            "tidemark_reassigning_partitions",
            "Partitions led here whose replicas are being moved, by the stage of it.",
            "stage",
            {stage.value: float(count) for stage, count in reassignments.partitions.items()},
        )
        yield gauge(
            "tidemark_reassigning_partitions_stuck",
            "Those of them that go no further: `tidemark replica status` says why.",
            reassignments.stuck,
        )
        yield gauge(
            "tidemark_reassignment_remaining_bytes",
            "What has still to be copied to the replicas that are being made now, about.",
            reassignments.remaining_bytes,
        )
        yield counter(
            "tidemark_reassignment_bytes_out",
            "Bytes of records that were copied to new replicas from here.",
            reassignments.bytes_out,
        )
        yield histogram(
            "tidemark_reassignment_pause_seconds",
            "For how long writes to a partition were held while its voters were changed.",
            reassignments.pause,
        )
