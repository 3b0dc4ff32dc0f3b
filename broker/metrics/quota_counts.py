"""What is counted of clients that are over their quotas."""

from enum import StrEnum

from tidemark.broker.metrics.counts import Count


class Throttled(StrEnum):
    """Which quota a client was over."""

    PRODUCE = "produce"
    FETCH = "fetch"
    REQUEST = "request"


class QuotaMetrics:
    """Of one broker's clients."""

    def __init__(self) -> None:
        self.throttled = {why: Count() for why in Throttled}
        """Requests whose clients were told to hold back, by the quota that took longest."""
        self.throttle_ms = {why: Count() for why in Throttled}
        """For how long, in all."""
        self.held_back = 0
        """Connections that are not read now."""
