"""What is asked of a group coordinator and what it answers, free of the wire's versions.

Where versions of an API differ in meaning and not only in bytes, the request says which meaning is
wanted (`requires_member_id`, `may_skip_assignment`).
"""

from collections.abc import Mapping
from dataclasses import field
from enum import Enum
from types import MappingProxyType
from typing import Final, NamedTuple, Self

from tidemark.partitions.state_machines.groups.topic_view import MayKnow, Partitions
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.types import ProducerId, TopicPartition
from tidemark.protocol.values import dataclass

NO_GENERATION: Final = -1
"""The generation that a commit names which comes from no member: an admin, a simple consumer."""

UNKNOWN_MEMBER: Final = ""
"""The member id of a client that has none yet."""


class GroupState(Enum):
    """What a group is doing. The values are the names that clients see."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """A member enters the group's next generation. `new_member_id` is for one that has no id."""

    group_id: str
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    protocol_type: str
    protocols: tuple[tuple[str, bytes], ...]
    session_timeout_ms: int
    rebalance_timeout_ms: int
    new_member_id: str
    reason: str = ""
    """Why, as the client says it."""
    requires_member_id: bool = True
    may_skip_assignment: bool = True
    may_know: MayKnow | None = None
    """Asked where the coordinator assigns; `None` is of everything."""

    @property
    def protocol_names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.protocols)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sync:
    """A member asks for its assignment; the leader's brings everybody's."""

    group_id: str
    member_id: str
    instance_id: str | None
    generation: int
    protocol_type: str | None = None
    protocol: str | None = None
    assignments: Mapping[str, bytes] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    group_id: str
    member_id: str
    instance_id: str | None
    generation: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaver:
    """Who leaves: by member id, or by instance id alone, as an administrator does it."""

    member_id: str
    instance_id: str | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leave:
    group_id: str
    leavers: tuple[Leaver, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetToCommit:
    offset: int
    leader_epoch: int = -1
    metadata: str = ""


class CommittingProducer(NamedTuple):
    """Whose transaction commits offsets."""

    id: ProducerId
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """`retention_ms` is how long to keep the offsets; -1 is the broker's own time."""

    group_id: str
    offsets: Mapping[TopicPartition, OffsetToCommit]
    generation: int = NO_GENERATION
    member_id: str = UNKNOWN_MEMBER
    instance_id: str | None = None
    retention_ms: int = -1
    producer: CommittingProducer | None = None
    """With one, they count if and when its transaction is committed (KIP-447)."""
    knows_member_epochs: bool = True
    """Whether the client can be in a group of the consumer protocol."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteGroup:
    group_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteOffsets:
    group_id: str
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerHeartbeat:
    """What a member of the consumer protocol says. What is None has not changed."""

    group_id: str
    member_id: str
    epoch: int
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int | None = None
    topics: frozenset[str] | None = None
    pattern: str | None = None
    """A regular expression; empty for none any more."""
    assignor: str | None = None
    owned: Partitions | None = None
    may_know: MayKnow | None = None
    """Asked of what the pattern matches; `None` is of everything."""

    @property
    def is_full(self) -> bool:
        """Whether the member says everything, as one that is not sure what is known of it."""
        return (
            self.rebalance_timeout_ms is not None
            and (self.topics is not None or self.pattern is not None)
            and self.owned is not None
        )


Request = Join | Sync | Leave | Commit | DeleteGroup | DeleteOffsets | ConsumerHeartbeat


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What every answer has: how it went."""

    error: ErrorCode = ErrorCode.NONE

    def refused(self, error: ErrorCode) -> Self:
        """The answer of the same kind that says only what went wrong."""
        return type(self)(error=error)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberMetadata:
    """What a leader learns of one member."""

    member_id: str
    instance_id: str | None
    metadata: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinAnswer(Answer):
    member_id: str = UNKNOWN_MEMBER
    generation: int = NO_GENERATION
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str = ""
    members: tuple[MemberMetadata, ...] = ()
    skip_assignment: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncAnswer(Answer):
    protocol_type: str | None = None
    protocol: str | None = None
    assignment: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerHeartbeatAnswer(Answer):
    """`assignment` is all that the member may read, None if that has not changed."""

    message: str | None = None
    member_id: str | None = None
    epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: Partitions | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveAnswer(Answer):
    """`members` in the order of the request."""

    members: tuple[tuple[Leaver, ErrorCode], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitAnswer(Answer):
    """`refused_partitions` were not committed; all others were, if `error` is NONE."""

    refused_partitions: Mapping[TopicPartition, ErrorCode] = field(
        default_factory=lambda: MappingProxyType({})
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteAnswer(Answer):
    """`refused_partitions` were kept; only DeleteOffsets has some."""

    refused_partitions: Mapping[TopicPartition, ErrorCode] = field(
        default_factory=lambda: MappingProxyType({})
    )
