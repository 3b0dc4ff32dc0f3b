"""What is counted of the transactions that this broker coordinates."""

from collections.abc import Callable, Mapping

from tidemark.broker.metrics.counts import Count


class TransactionMetrics:
    """Decisions, and markers on their way to the partitions of what was decided."""

    def __init__(self) -> None:
        self.commits = Count()
        self.aborts = Count()
        self.markers_owed = 0
        """Those that are not written yet."""
        self.markers_written = Count()
        self.marker_retries = Count()
        self.ids_by_state: Callable[[], Mapping[str, int]] = dict
        """How many transactional ids are in which state. Called on the scrape's thread."""
