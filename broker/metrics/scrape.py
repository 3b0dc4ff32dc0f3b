"""The page that a scrape gets.

prometheus_client is imported when the first page is asked for, and not before: it brings an HTTP
server of its own, which would be a tenth of the broker's start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tidemark.broker.late_imports import repeatable_imports
from tidemark.broker.metrics.figures import Figures, Limits
from tidemark.broker.metrics.metrics import Metrics

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry


class Page(NamedTuple):
    """A rendered scrape."""

    body: bytes
    content_type: str


class Scrape:
    """Renders one broker's metrics. Blocking, for a worker thread, one page at a time."""

    def __init__(self, metrics: Metrics, limits: Limits) -> None:
        self._metrics = metrics
        self._limits = limits
        self._figures: Figures | None = None
        self._registry: CollectorRegistry | None = None

    def show(self, figures: Figures) -> None:
        """Show a broker that has recovered; until then there are only counts."""
        self._figures = figures
        self._registry = None

    def page(self, accept: str) -> Page:
        """The metrics now, in the format that the `Accept` header asks for. Raises `OSError` while
        there are no descriptors for what it needs."""
        with repeatable_imports():
            from prometheus_client.exposition import choose_encoder

            registry = self.registry()
        encode, content_type = choose_encoder(accept)
        return Page(encode(registry), content_type)

    def registry(self) -> CollectorRegistry:
        """The collectors of this broker alone: several may run in one process."""
        # Kept in a local: `show` may come in between, on the loop's thread.
        registry = self._registry
        if registry is None:
            registry = self._registry = self._fill()
        return registry

    def _fill(self) -> CollectorRegistry:
        from prometheus_client import CollectorRegistry, ProcessCollector

        from tidemark.broker.metrics.collect_balance import BalanceCollector
        from tidemark.broker.metrics.collect_compaction import CompactionCollector
        from tidemark.broker.metrics.collect_counts import CountsCollector
        from tidemark.broker.metrics.collect_figures import FiguresCollector
        from tidemark.broker.metrics.collect_reassignments import ReassignmentsCollector
        from tidemark.broker.metrics.collect_transactions import TransactionsCollector

        registry = CollectorRegistry(auto_describe=False)
        registry.register(CountsCollector(self._metrics))
        registry.register(BalanceCollector(self._metrics.balance))
        registry.register(ReassignmentsCollector(self._metrics.reassignments))
        registry.register(CompactionCollector(self._metrics.compaction))
        registry.register(TransactionsCollector(self._metrics.transactions))
        if self._figures is not None:
            registry.register(FiguresCollector(self._figures, self._metrics, self._limits))
        ProcessCollector(registry=registry)
        return registry
