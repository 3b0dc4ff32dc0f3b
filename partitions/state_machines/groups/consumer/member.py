"""A member of a group of the consumer protocol, as a value."""

from enum import Enum
from typing import Final

from tidemark.partitions.state_machines.groups.topic_view import NO_PARTITIONS, Partitions
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
    assignor: str | None = None
    rebalance_timeout_ms: int = -1
    epoch: int = JOINING_EPOCH
    previous_epoch: int = JOINING_EPOCH
    state: MemberState = MemberState.STABLE
    assigned: Partitions = NO_PARTITIONS
    revoking: Partitions = NO_PARTITIONS

    @property
    def held(self) -> Partitions:
        """What nobody else may be given."""
        return self.assigned | self.revoking if self.revoking else self.assigned

    @property
    def is_away(self) -> bool:
        return self.epoch == AWAY_EPOCH

    def reads_as(self, other: "ConsumerMember") -> bool:
        """Whether both want the same, so that one in the other's place changes no assignment."""
        return (self.topics, self.pattern, self.assignor) == (
            other.topics,
            other.pattern,
            other.assignor,
        )
