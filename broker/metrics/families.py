"""Prometheus's families from plain numbers, one line each where they are declared."""

from collections.abc import Mapping

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)

from tidemark.broker.metrics.counts import Count, Latency


def counter(name: str, help: str, count: Count) -> CounterMetricFamily:
    """A counter without labels; the exposition adds `_total` to the name."""
    return CounterMetricFamily(name, help, value=count.value)


def counters(name: str, help: str, label: str, values: Mapping[str, Count]) -> CounterMetricFamily:
    """A counter for each value of one label."""
    family = CounterMetricFamily(name, help, labels=[label])
    for value, count in values.items():
        family.add_metric([value], count.value)
    return family


def gauge(name: str, help: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, help, value=value)


def gauges(name: str, help: str, label: str, values: Mapping[str, float]) -> GaugeMetricFamily:
    """A gauge for each value of one label."""
    family = GaugeMetricFamily(name, help, labels=[label])
    for value, number in values.items():
        family.add_metric([value], number)
    return family


def gauges_of_partitions(name: str, help: str, values: Mapping[str, float]) -> GaugeMetricFamily:
    """A gauge for each partition, by its name."""
    family = GaugeMetricFamily(name, help, labels=["topic", "partition"])
    for partition, number in values.items():
        topic, _, index = partition.rpartition("-")
        family.add_metric([topic, index], number)
    return family


def histogram(name: str, help: str, latency: Latency) -> HistogramMetricFamily:
    return HistogramMetricFamily(
        name, help, buckets=latency.buckets(), sum_value=latency.sum_seconds
    )


def histograms(
    name: str, help: str, label: str, values: Mapping[str, Latency]
) -> HistogramMetricFamily:
    """A histogram for each value of one label."""
    family = HistogramMetricFamily(name, help, labels=[label])
    for value, latency in values.items():
        family.add_metric([value], latency.buckets(), latency.sum_seconds)
    return family
