"""What a scrape tells of replicas that move, as the leaders of their groups here see it."""

from tidemark.broker.metrics.counts import Count, Latency
from tidemark.partitions.replication.reassigning import Reassignments, Stage


class ReassignmentMetrics:
    """As it was when this broker last looked at the groups it leads."""

    def __init__(self) -> None:
        self.partitions = dict.fromkeys(Stage, 0)
        self.stuck = 0
        """Those of which something stands in the way."""
        self.remaining_bytes = 0
        self.bytes_out = Count()
        self.pause = Latency()
        """For how long writes were held, each time that voters were changed."""

    def show(self, reassignments: Reassignments) -> None:
        states = [state for _, state in reassignments.states()]
        self.partitions = dict.fromkeys(Stage, 0)
        for state in states:
            self.partitions[state.stage] += 1
        self.stuck = sum(bool(state.why) for state in states)
        self.remaining_bytes = sum(state.remaining_bytes for state in states)
        self.bytes_out.value = reassignments.bytes_sent
        for seconds in reassignments.take_pauses():
            self.pause.observe(seconds)
