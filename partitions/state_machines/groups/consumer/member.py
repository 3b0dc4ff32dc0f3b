"""A member of a group of the consumer protocol, as a value."""

from collections.abc import Collection, Mapping
from dataclasses import field, replace
from enum import Enum
from typing import Final

from tidemark.partitions.state_machines.groups.topic_view import (
    NO_PARTITIONS,
    MayKnow,
    Partitions,
    TopicIdPartition,
)
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.messages.consumer_group_records import StoredMemberState
from tidemark.protocol.values import dataclass

JOINING_EPOCH: Final = 0
"""What a member names that asks to be let in."""

LEAVING_EPOCH: Final = -1
AWAY_EPOCH: Final = -2
"""The epoch of a static member that has left and said that it will be back."""


class MemberState(Enum):
    """How far a member is on the way to its target. The values are those of the records."""

    STABLE = StoredMemberState.STABLE
    """It has its whole target."""
    REVOKING = StoredMemberState.UNREVOKED_PARTITIONS
    """It has to give up partitions before it gets others, and the group's epoch."""
    WAITING = StoredMemberState.UNRELEASED_PARTITIONS
    """Others have yet to give up some of what it is to have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassicSide:
    """What is known besides of a member that takes part by the classic protocol."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]
    """What it offers, by name: the one it likes best first, which is also the one it is told."""

    @property
    def protocol(self) -> str:
        return self.protocols[0][0]

    @property
    def metadata(self) -> bytes:
        """What it says to whoever assigns by its protocol."""
        return self.protocols[0][1]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerMember:
    """Invariant: `assigned` and `revoking` have nothing in common, and `revoking` is empty unless
    the member is REVOKING."""

    id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: frozenset[str] = frozenset()
    pattern: str | None = None
    """The topics whose whole names match are read as well."""
    may_know: MayKnow | None = None
    """Which of those. Not in the log: `None` until the member is heard, or if nothing is hidden."""
    assignor: str | None = None
    rebalance_timeout_ms: int = -1
    epoch: int = JOINING_EPOCH
    previous_epoch: int = JOINING_EPOCH
    state: MemberState = MemberState.STABLE
    assigned: Partitions = NO_PARTITIONS
    revoking: Partitions = NO_PARTITIONS
    since: Mapping[TopicIdPartition, int] = field(default_factory=dict, compare=False)
    """From which of its epochs on it has held what it holds, without a break. Where a partition is
    not here, nothing is known from before its present epoch."""
    classic: ClassicSide | None = None
    """Of a member of the classic protocol, while its group is on the way to the other one."""

    @property
    def held(self) -> Partitions:
        """What nobody else may be given."""
        return self.assigned | self.revoking if self.revoking else self.assigned

    @property
    def is_classic(self) -> bool:
        return self.classic is not None

    @property
    def is_away(self) -> bool:
        return self.epoch == AWAY_EPOCH

    def check_epoch(self, said: int) -> ErrorCode:
        """NONE if that is its epoch; else what tells it, in the words of its protocol."""
        if said == self.epoch:
            return ErrorCode.NONE
        # A classic member joins again. Another learns its epoch by its next heartbeat.
        return ErrorCode.ILLEGAL_GENERATION if self.is_classic else ErrorCode.STALE_MEMBER_EPOCH

    def has_held(self, partitions: Collection[TopicIdPartition], *, since: int) -> bool:
        """Whether all of these have been its own since that epoch, one before its present one."""
        if since >= self.epoch or not partitions:
            return False
        return all(self.held_since(each) <= since for each in partitions)

    def held_since(self, partition: TopicIdPartition) -> int:
        return self.since.get(partition, self.epoch)

    def session_ms(self, default_ms: int) -> int:
        """How long it may be silent. Only members of the classic protocol choose."""
        return default_ms if self.classic is None else self.classic.session_timeout_ms

    def anew(self) -> "ConsumerMember":
        """The same as one that joins: nothing is to be waited for, whatever it held before."""
        return replace(
            self,
            epoch=JOINING_EPOCH,
            previous_epoch=JOINING_EPOCH,
            state=MemberState.STABLE,
            revoking=NO_PARTITIONS,
        )

    @property
    def has_given_up_its_name(self) -> bool:
        """Whether another process may take a static member's place by the consumer protocol."""
        # One of the classic protocol never says that it goes away: its name is taken from it.
        return self.is_away or self.is_classic

    def reads_as(self, other: "ConsumerMember") -> bool:
        """Whether both want the same, so that one in the other's place changes no assignment."""
        return (self.topics, self.pattern, self.assignor) == (
            other.topics,
            other.pattern,
            other.assignor,
        )
