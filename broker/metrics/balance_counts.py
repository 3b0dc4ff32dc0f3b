"""What the broker that leads the cluster's metadata knows of the others, for a scrape."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from tidemark.broker.metrics.counts import Count
from tidemark.partitions.balancing.eligibility import Role
from tidemark.partitions.balancing.leaders import Cause, Plan
from tidemark.partitions.balancing.snapshot import Snapshot
from tidemark.protocol.types import NodeId


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
        self.leader_spread: int | None = None
        """Between those that take leaders: the most that one leads less the fewest."""
        self.unevenness: float | None = None
        """The sum that is made smaller."""

    def show(self, snapshot: Snapshot, made: Plan) -> None:
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
        taking = [leaders[each.node_id] for each in made.brokers if each.role is Role.TAKES]
        self.leader_spread = max(taking) - min(taking) if taking else 0
        self.unevenness = made.before.total

    def clear(self) -> None:
        self.brokers = {}
        self.leader_spread = self.unevenness = None
