"""What a broker counts, and how a scrape shows it."""

from tidemark.broker.metrics.collect_figures import Limits
from tidemark.broker.metrics.counts import Count, Latency
from tidemark.broker.metrics.figures import Figures, GroupFigures, PartitionFigures
from tidemark.broker.metrics.metrics import (
    OTHER,
    ApiMetrics,
    BadInput,
    ConnectionEnd,
    Metrics,
    TopicMetrics,
)
from tidemark.broker.metrics.registry import show_broker

__all__ = [
    "OTHER",
    "ApiMetrics",
    "BadInput",
    "ConnectionEnd",
    "Count",
    "Figures",
    "GroupFigures",
    "Latency",
    "Limits",
    "Metrics",
    "PartitionFigures",
    "TopicMetrics",
    "show_broker",
]
