"""What the admin calls return of replicas: how they are, where they move, what they take."""

from enum import StrEnum

from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.types import Epoch, NodeId, Offset, TopicPartition
from tidemark.protocol.values import dataclass


class ReplicaRole(StrEnum):
    """What a replica is in its group."""

    VOTER = "voter"
    LEARNER = "learner"
    """On its way to a vote."""
    OBSERVER = "observer"
    """Has a copy to be read from, and no vote."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaStanding:
    """How far one replica is; `None` is not known."""

    node_id: NodeId
    role: ReplicaRole
    is_alive: bool
    end_offset: Offset | None
    lag_records: int | None
    staleness_ms: int | None
    """For how long it may have lacked what the leader has committed; observers say so."""
    parent: NodeId | None
    """Whom an observer pulls from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaChange:
    """Who holds a partition, and who is to, the preferred leader first."""

    before: tuple[NodeId, ...]
    after: tuple[NodeId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OngoingReassignment:
    """A partition whose replicas are being moved."""

    replicas: tuple[NodeId, ...]
    """Who holds it or is to: those that are wanted first, then those that are to leave."""
    adding: tuple[NodeId, ...]
    removing: tuple[NodeId, ...]

    @property
    def wanted(self) -> tuple[NodeId, ...]:
        return tuple(node for node in self.replicas if node not in self.removing)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReassignmentProgress:
    """How far the move of a partition's replicas is, as its leader knows it."""

    wanted: tuple[NodeId, ...]
    stage: str | None
    """`waiting`, `copying`, `moving the leader`, `changing voters` or `done`; `None`: the leader
    did not answer."""
    why: str
    """What stands in the way, if anything does."""
    copying_to: NodeId | None
    copied_bytes: int
    remaining_bytes: int
    bytes_per_second: int

    @property
    def estimated_seconds(self) -> float | None:
        """Until the broker that is being copied to holds what there is now."""
        if self.copying_to is None or not self.bytes_per_second:
            return None
        return self.remaining_bytes / self.bytes_per_second


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionProgress:
    """How far the leader's log of a partition is compacted."""

    dirty_ratio: float
    """The share of it that was never compacted."""
    cleaned_ms: int | None
    """When the last run ended, since 1970; `None`: none is known."""
    why_set_aside: str
    """What keeps it from being compacted, if anything does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionReplicas:
    """How the replicas of one partition are, voters first."""

    leader: NodeId | None
    leader_epoch: Epoch
    high_watermark: Offset | None
    replicas: tuple[ReplicaStanding, ...]
    reassignment: ReassignmentProgress | None = None
    """`None`: its replicas are not being moved."""
    compaction: CompactionProgress | None = None
    """`None`: the topic is not compacted, or was not looked at yet."""

    @property
    def observers(self) -> tuple[ReplicaStanding, ...]:
        return tuple(each for each in self.replicas if each.role is ReplicaRole.OBSERVER)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaSize:
    """One replica on a disk. `offset_lag` is how far its end is behind the high watermark."""

    topic_partition: TopicPartition
    size_bytes: int
    offset_lag: int
    is_future: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirDescription:
    """One data directory of one broker; -1 bytes from brokers too old to say."""

    node_id: NodeId
    path: str
    error: ErrorCode
    total_bytes: int
    usable_bytes: int
    replicas: tuple[ReplicaSize, ...]
    is_full: bool = False
    """Whether the broker refuses records, because hardly anything is free. Kafka's do not tell."""
