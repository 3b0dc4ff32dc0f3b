"""Puts the collectors of one broker into its registry."""

from prometheus_client import ProcessCollector

from tidemark.broker.metrics.collect_counts import CountsCollector
from tidemark.broker.metrics.collect_figures import FiguresCollector, Limits
from tidemark.broker.metrics.figures import Figures
from tidemark.broker.metrics.metrics import Metrics


def show_broker(metrics: Metrics, figures: Figures, limits: Limits) -> None:
    """Have scrapes of `metrics.registry` show the broker, and the process it runs in."""
    metrics.registry.register(CountsCollector(metrics))
    metrics.registry.register(FiguresCollector(figures, metrics, limits))
    ProcessCollector(registry=metrics.registry)
