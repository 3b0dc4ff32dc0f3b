"""What is counted of reads that may come from any replica, and of those that must not be stale."""

from collections.abc import Callable
from typing import Final

from tidemark.broker.metrics.counts import Count

ROLES: Final = ("leader", "follower", "observer")


class ReadMetrics:
    """Of one broker's consumers."""

    def __init__(self) -> None:
        self.fetched = {role: Count() for role in ROLES}
        """Partitions of fetches that got records, by what this broker is for them."""
        self.fetched_bytes = {role: Count() for role in ROLES}
        self.sent_on = Count()
        """Partitions of fetches whose readers were sent to a nearer replica."""
        self.sent_back = Count()
        """Those whose readers were sent back to the leader, because this replica is behind."""
        self.confirmed = Count()
        self.unconfirmed = Count()
        """Questions whether this broker leads a partition, that it could and could not answer."""
        self.rounds: Callable[[], int] = lambda: 0
        """How often a majority was asked; many questions share a round."""
        self.fetch_sessions: Callable[[], int] = lambda: 0
        """Fetch sessions that are remembered now."""
        self.evicted_sessions: Callable[[], int] = lambda: 0
        """Those that had to make room for others."""
