"""What a broker counts, and how a scrape shows it."""

from tidemark.broker.metrics.counts import Count, Latency
from tidemark.broker.metrics.metrics import (
    OTHER,
    ApiMetrics,
    BadInput,
    ConnectionEnd,
    Metrics,
    TopicMetrics,
)

__all__ = [
    "OTHER",
    "ApiMetrics",
    "BadInput",
    "ConnectionEnd",
    "Count",
    "Latency",
    "Metrics",
    "TopicMetrics",
]
