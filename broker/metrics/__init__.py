"""What a broker counts, and how a scrape shows it."""

from tidemark.broker.metrics.counts import Count, Latency
from tidemark.broker.metrics.figures import (
    Figures,
    GroupFigures,
    LedFigures,
    Limits,
    PartitionFigures,
)
from tidemark.broker.metrics.metrics import (
    OTHER,
    ApiMetrics,
    BadInput,
    ConnectionEnd,
    Metrics,
    TopicMetrics,
)
from tidemark.broker.metrics.scrape import Page, Scrape

__all__ = [
    "OTHER",
    "ApiMetrics",
    "BadInput",
    "ConnectionEnd",
    "Count",
    "Figures",
    "GroupFigures",
    "Latency",
    "LedFigures",
    "Limits",
    "Metrics",
    "Page",
    "PartitionFigures",
    "Scrape",
    "TopicMetrics",
]
