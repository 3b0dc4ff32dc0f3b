"""What is counted of leaders that were to go from this broker."""

from tidemark.broker.metrics.counts import Count, Latency
from tidemark.partitions.replication.ended_move import Ending


class MoveMetrics:
    """Moves that this broker carried out as the leader."""

    def __init__(self) -> None:
        self.ended = {ending: Count() for ending in Ending}
        self.pause = Latency()
        """How long writes were held in all, of each move that got so far."""
