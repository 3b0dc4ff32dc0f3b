"""What the broker that leads the cluster's metadata knows of the others, for a scrape."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tidemark.broker.metrics.counts import Count
from tidemark.partitions.balancing.leaders import Cause, Plan
from tidemark.partitions.balancing.snapshot import Group, Snapshot
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
        self._counted: Sequence[Group] | None = None
        self._leaders: Counter[NodeId | None] = Counter()
        self._replicas: Counter[NodeId] = Counter()

    def show(self, snapshot: Snapshot) -> None:
        if self._counted is not snapshot.groups:  # an idle cluster's are the same ones
            self._counted = snapshot.groups
            self._leaders = Counter(group.leader for group in snapshot.groups)
            self._replicas = Counter(node for group in snapshot.groups for node in group.replicas)
        self.brokers = {
            broker.node_id: BrokerFigures(
                self._leaders[broker.node_id],
                self._replicas[broker.node_id],
                broker.state.name.lower(),
                broker.is_alive,
            )
            for broker in snapshot.brokers
        }

    def planned(self, made: Plan) -> None:
        self.unevenness = made.before.total
        self.misplaced = made.before.misplaced

    def clear(self) -> None:
        self.brokers, self._counted = {}, None
        self.misplaced = self.unevenness = None
