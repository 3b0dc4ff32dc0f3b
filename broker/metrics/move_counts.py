"""What is counted of leaders that are to go from this broker, and of what waits for that."""

from collections.abc import Mapping

from tidemark.broker.metrics.counts import Count, Latency
from tidemark.partitions.replication.ended_move import Ending
from tidemark.partitions.replication.moves import Phase


class MoveMetrics:
    """Moves that this broker carries out as the leader, and produce requests that are held."""

    def __init__(self) -> None:
        self.ended = {ending: Count() for ending in Ending}
        self.running: Mapping[Phase, int] = dict.fromkeys(Phase, 0)
        """How many moves are in which phase, as it was when they were last looked at."""
        self.pause = Latency()
        """How long writes were held in all, of each move that got so far."""
        self.held_requests = 0
        self.held_bytes = 0
