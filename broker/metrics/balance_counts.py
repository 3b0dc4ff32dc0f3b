"""What the broker that leads the cluster's metadata knows of the others, for a scrape."""

from __future__ import annotations

from collections import Counter

from tidemark.broker.metrics.counts import Count
from tidemark.partitions.balancing.leaders import Cause, Plan
from tidemark.partitions.balancing.snapshot import Snapshot
from tidemark.protocol.types import NodeId
from tidemark.protocol.values import dataclass


@dataclass(frozen=True, slots=True)
class BrokerFigures:
    """One broker, as it was when it was last looked at."""

    leaders: int
    replicas: int
    state: str
    is_alive: bool


class BalanceMetrics:
    """Empty, but for the counts of moves, while another broker leads the metadata."""

    def __init__(self) -> None:
        self.moves = {cause: Count() for cause in Cause}
        """Leaders' moves that were begun, by what they are for."""
        self.brokers: dict[NodeId, BrokerFigures] = {}
        self.misplaced: int | None = None
        """Leaders on brokers that are to lead nothing."""
        self.unevenness: float | None = None
        """The sum that is made smaller."""

    def show(self, snapshot: Snapshot) -> None:
        leaders = Counter(group.leader for group in snapshot.groups)
        replicas = Counter(node for group in snapshot.groups for node in group.replicas)
        self.brokers = {
            broker.node_id: BrokerFigures(
                leaders[broker.node_id],
                replicas[broker.node_id],
                broker.state.name.lower(),
                broker.is_alive,
            )
            for broker in snapshot.brokers
        }

    def planned(self, made: Plan) -> None:
        self.unevenness = made.before.total
        self.misplaced = made.before.misplaced

    def clear(self) -> None:
        self.brokers = {}
        self.misplaced = self.unevenness = None
