"""What the admin calls return: plain values, named as users speak of the things."""

import uuid
from collections.abc import Mapping
from dataclasses import field
from enum import Enum

from tidemark.protocol.configs import ConfigSource
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.types import NO_EPOCH, Epoch, NodeId, Offset, TopicPartition
from tidemark.protocol.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerDescription:
    """One broker, at the address it advertises to this client."""

    node_id: NodeId
    host: str
    port: int
    rack: str | None = None
    is_fenced: bool = False
    """Known to the cluster, but not up; such brokers are listed only where they are asked for."""

    @property
    def address(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterDescription:
    """The cluster as the asked broker sees it. `controller_id` is None while there is none."""

    cluster_id: str | None
    controller_id: NodeId | None
    brokers: tuple[BrokerDescription, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionDescription:
    """One partition's replicas. `leader` is None while there is none."""

    partition: int
    leader: NodeId | None
    leader_epoch: Epoch
    replicas: tuple[NodeId, ...]
    in_sync: tuple[NodeId, ...]
    offline: tuple[NodeId, ...] = ()
    error: ErrorCode = ErrorCode.NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicDescription:
    """One topic. `topic_id` is zero where the broker has no topic ids."""

    name: str
    topic_id: uuid.UUID
    is_internal: bool
    partitions: tuple[PartitionDescription, ...]

    @property
    def replication_factor(self) -> int:
        return len(self.partitions[0].replicas) if self.partitions else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedTopic:
    """What came of a creation; -1 and no configs from brokers too old to say."""

    name: str
    topic_id: uuid.UUID
    partitions: int
    replication_factor: int
    configs: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumReplica:
    """How far one replica has come, as the leader knows; `end_offset` is None where it does not."""

    node_id: NodeId
    end_offset: Offset | None
    last_caught_up_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumDescription:
    """Who replicates one partition: the `voters` elect its leader, the `observers` only follow."""

    leader: NodeId
    leader_epoch: Epoch
    high_watermark: Offset
    voters: tuple[QuorumReplica, ...]
    observers: tuple[QuorumReplica, ...]

    def lag(self) -> dict[NodeId, int | None]:
        """How many offsets each replica's log ends before the leader's; None is not known."""
        replicas = (*self.voters, *self.observers)
        ends = {replica.node_id: replica.end_offset for replica in replicas}
        leader_end = ends.get(self.leader)
        return {
            node_id: None if end is None or leader_end is None else max(0, leader_end - end)
            for node_id, end in sorted(ends.items())
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmedEnd:
    """Up to where a partition is committed, as a leader says that is certain to lead it."""

    high_watermark: Offset
    leader_epoch: Epoch


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigEntry:
    """One config's value in force. `value` is None where it is sensitive or has none."""

    name: str
    value: str | None
    source: ConfigSource
    is_read_only: bool = False
    is_sensitive: bool = False
    documentation: str | None = None

    @property
    def is_default(self) -> bool:
        return self.source is ConfigSource.DEFAULT


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedOffset:
    """An offset that was asked for; -1 where no record matches, and then the timestamp too."""

    offset: Offset
    timestamp_ms: int
    leader_epoch: Epoch


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedOffset:
    """A group's commit for one partition: the next offset to read."""

    offset: Offset
    leader_epoch: Epoch = NO_EPOCH
    metadata: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupListing:
    """One group in a list. `state` is empty from brokers too old to say.

    `kind` is the protocol that its members speak, `classic` or `consumer` (KIP-848).
    """

    group: str
    protocol_type: str
    state: str
    coordinator: NodeId
    kind: str = "classic"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberDescription:
    """One member. `assignment` is empty where the group's protocol is not a consumer's."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    assignment: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupDescription:
    """One group; `assignor` is empty while it has no members."""

    group: str
    state: str
    protocol_type: str
    assignor: str
    coordinator: NodeId
    members: tuple[MemberDescription, ...]
    kind: str = "classic"
    """The protocol that its members speak: `classic`, or `consumer` (KIP-848)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RebalanceDescription:
    """How a generation came about; of the consumer protocol, an epoch of the group."""

    generation: int
    at_ms: int
    reasons: tuple[str, ...]
    """What began it first, then what came while it was under way."""
    more_reasons: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiRange:
    """An API that a broker serves, and the versions it speaks of it."""

    api_key: int
    name: str
    min_version: int
    max_version: int


class Default(Enum):
    """In place of a name: all that have no quota of their own."""

    DEFAULT = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientQuotas:
    """The quotas of a user, of a client id, or of a client id of a user."""

    user: str | Default | None
    client_id: str | Default | None
    values: Mapping[str, float]
    """By what is limited, as in `producer_byte_rate`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UserDescription:
    """A user that can log in with SCRAM."""

    name: str
    iterations: Mapping[str, int]
    """By mechanism: how often its password is hashed."""
