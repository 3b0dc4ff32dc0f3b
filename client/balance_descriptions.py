"""What the calls about balancing leaders and about states of brokers return."""

from __future__ import annotations

from tidemark.protocol.types import NodeId, TopicPartition
from tidemark.protocol.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedMove:
    """One leader to be moved. Moves of one `step` are worth their `gain` together."""

    topic_partition: TopicPartition
    source: NodeId
    target: NodeId
    step: int
    gain: float
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedMove:
    """What is not done, and why: one for all partitions that it is true of for the same reason."""

    reason: str
    sentence: str
    target: NodeId | None
    """Where they do not go; None: it is about the partitions themselves."""
    topic_partition: TopicPartition | None
    """The one that it hurts most."""
    partitions: int

    def __str__(self) -> str:
        if self.topic_partition is None:
            return self.sentence
        others = f" and {self.partitions - 1} more" if self.partitions > 1 else ""
        return f"{self.topic_partition}{others}: {self.sentence}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BalancedBroker:
    """A broker before and after a plan. A `role` is "takes", "left alone" or "emptied"."""

    node_id: NodeId
    role: str
    leaders_before: int
    leaders_after: int
    share_before: float
    share_after: float


@dataclass(frozen=True, slots=True, kw_only=True)
class UnevennessTerm:
    """A term of the sum that a plan makes smaller. `weight` is None where it is before all else."""

    name: str
    weight: float | None
    before: float
    after: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BalancePlan:
    """The whole way to where leaders are even."""

    is_enabled: bool
    """Whether the cluster balances its leaders by itself."""
    terms: tuple[UnevennessTerm, ...]
    brokers: tuple[BalancedBroker, ...]
    moves: tuple[PlannedMove, ...]
    refusals: tuple[RefusedMove, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StateChange:
    """What follows of a broker's new state. It is done in the background: `describe_brokers`."""

    leaders: int
    """Leaders that move away."""
    replicas: int
    """Replicas that move away."""
    size_bytes: int
    """Their bytes, which are copied."""
    refusals: tuple[RefusedMove, ...]
    """What it costs, where that was forced or only asked about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerStatus:
    """What a broker leads and holds, what is wanted of it, and how far that is."""

    node_id: NodeId
    rack: str | None
    is_alive: bool
    up_seconds: float | None
    """For how long it has been heard; None if it is not."""
    state: str
    """"active", "draining", "drained", "decommissioning" or "decommissioned"."""
    is_controller: bool
    leaders: int
    replicas: int
    size_bytes: int
    bytes_in_per_second: int
    bytes_out_per_second: int
    leaders_coming: int
    leaders_going: int
    replicas_going: int
    left_seconds: float | None
    """How much longer it takes until what is wanted of it is so; None: nobody knows."""
    stuck: tuple[str, ...]
    """What stands in the way."""

    @property
    def is_settled(self) -> bool:
        """Whether it is as it is wanted."""
        return self.state in ("active", "drained", "decommissioned")
