"""Transactions, at a scrape of the broker that coordinates them."""

from collections.abc import Iterator

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from tidemark.broker.metrics.families import counter, counters, gauge, gauges
from tidemark.broker.metrics.transaction_counts import TransactionMetrics


class TransactionsCollector(Collector):
    """The families of a `TransactionMetrics`."""

    def __init__(self, transactions: TransactionMetrics) -> None:
        self._transactions = transactions

    def collect(self) -> Iterator[Metric]:
        transactions = self._transactions
        yield gauges(
            "tidemark_transactional_ids",
            "Transactional ids that this broker coordinates, by the state of their transactions.",
            "state",
            {state: float(count) for state, count in transactions.ids_by_state().items()},
        )
        yield counters(
            "tidemark_transactions_decided",
            "Transactions that were decided here: by their producers, by their timeouts, or "
            "because another producer took their id over.",
            "decision",
            {"abort": transactions.aborts, "commit": transactions.commits},
        )
        yield gauge(
            "tidemark_transaction_markers_owed",
            "Partitions that have not got the marker yet of a transaction that is decided: what is "
            "behind it waits there for readers that want only what is committed.",
            transactions.markers_owed,
        )
        yield counter(
            "tidemark_transaction_markers", "Markers written.", transactions.markers_written
        )
        yield counter(
            "tidemark_transaction_marker_retries",
            "Markers that had to be sent again: their partition had no leader, or no majority.",
            transactions.marker_retries,
        )
