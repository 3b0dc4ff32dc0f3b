"""What the balancer knows of a cluster at one moment. Times are milliseconds of one clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from types import MappingProxyType
from typing import Final, NamedTuple

from tidemark.protocol.types import NodeId, TopicPartition
from tidemark.protocol.values import dataclass

_NOBODY: Final[Mapping[NodeId, int]] = MappingProxyType({})


class BrokerState(Enum):
    """What the operator wants of a broker. Its value is how a sentence calls it."""

    ACTIVE = "active"
    DRAINING = "draining"
    DRAINED = "drained"
    DECOMMISSIONING = "being decommissioned"


@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    """A broker of the cluster, whether it runs or not."""

    node_id: NodeId
    rack: str | None = None
    """None: not told. All brokers that were not told theirs count as one rack."""
    state: BrokerState = BrokerState.ACTIVE
    is_alive: bool = True
    is_full: bool = False
    """Whether its disk takes no records: who leads there refuses them."""
    disk_since_ms: int | None = None
    """Since when its disk is full, or has room again; None: for as long as anybody knows."""
    has_told: bool = True
    """Whether it has said how its disk is: it may be full where `is_full` is not set."""
    up_since_ms: int = 0
    """When its process was first heard, or when it was last taken for dead and came back."""


class Group(NamedTuple):
    """A partition's replication group. A named tuple, as a snapshot has thousands of them."""

    partition: TopicPartition
    replicas: tuple[NodeId, ...]
    """As assigned: the first one is the preferred leader."""
    leader: NodeId | None
    """None: not known, or an election is under way."""
    voters: tuple[NodeId, ...]
    lags: Mapping[NodeId, int] = _NOBODY
    """How many records each follower is behind its leader's log end; a voter that is missing here
    has not answered in this epoch, or its answers do not count."""
    learners: tuple[NodeId, ...] = ()
    observers: tuple[NodeId, ...] = ()
    """Copies without a vote. Such a broker takes no replica of the group beside its own."""
    bytes_in_per_second: float = 0.0
    bytes_out_per_second: float = 0.0
    """To clients; what is replicated does not move with the leader alone."""
    size_bytes: int = 0
    moved_ms: int | None = None
    """When its leader last changed, or a move was given up; None: not since anybody knows."""
    moving_to: NodeId | None = None
    """Its leader is being handed over to this broker. It counts as if it led there already."""
    is_changing: bool = False
    """Its voters are being changed: its leader stays where it is."""

    @property
    def holders(self) -> frozenset[NodeId]:
        """The brokers that have no room for another replica of it."""
        return frozenset({*self.replicas, *self.observers})

    @property
    def is_moving(self) -> bool:
        return self.moving_to is not None

    @property
    def bytes_per_second(self) -> float:
        """What its leader takes and gives. A counter that went backwards counts as nothing."""
        return max(0.0, self.bytes_in_per_second + self.bytes_out_per_second)


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A cluster at one moment. The order of the brokers and of the groups means nothing."""

    now_ms: int
    brokers: Sequence[Broker]
    groups: Sequence[Group]

    def in_order(self) -> tuple[list[Broker], list[Group]]:
        """Brokers by number, groups by topic and partition: what is decided of them must not
        depend on the order in which they were found."""
        brokers = sorted(self.brokers, key=lambda broker: broker.node_id)
        groups = sorted(
            self.groups, key=lambda each: (each.partition.topic, each.partition.partition)
        )
        return brokers, groups
