"""One group of the consumer protocol: its members, their target, and who holds which partition."""

from collections.abc import Iterator, Mapping
from enum import Enum

from tidemark.partitions.state_machines.agenda import NEVER
from tidemark.partitions.state_machines.groups.consumer.member import (
    AWAY_EPOCH,
    ConsumerMember,
    MemberState,
)
from tidemark.partitions.state_machines.groups.consumer.pattern import Pattern
from tidemark.partitions.state_machines.groups.consumer.recording import Recording
from tidemark.partitions.state_machines.groups.history import History
from tidemark.partitions.state_machines.groups.identity import check_identity
from tidemark.partitions.state_machines.groups.topic_view import (
    NO_PARTITIONS,
    Partitions,
    TopicFacts,
    TopicIdPartition,
)
from tidemark.protocol.errors import ErrorCode


class ConsumerGroupState(Enum):
    """What a group is doing. The values are the names that clients see."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"


class ConsumerGroup:
    """Invariant: a partition is held by one member at most, and `holders` says by which."""

    def __init__(self, group_id: str, *, wall_ms: int, epoch: int = 0) -> None:
        self.id = group_id
        self.epoch = epoch
        """Grows whenever there may have to be another target."""
        self.target_epoch = epoch
        """The epoch that `target` was made for."""
        self.assignor = ""
        self.state_since_ms = wall_ms
        self.is_dead = False
        self.members: dict[str, ConsumerMember] = {}
        self.static_ids: dict[str, str] = {}
        self.target: dict[str, Partitions] = {}
        self.holders: dict[TopicIdPartition, str] = {}
        # What the members subscribe to, as it was when the target was made; and which version of
        # the topics that was looked up in.
        self.topics: Mapping[str, TopicFacts] = {}
        self.topics_hash = 0
        self.topics_version = -1
        self.patterns: dict[str, Pattern] = {}
        # Until when each member must be heard, and must have given up what it has to.
        self.sessions: dict[str, int] = {}
        self.revocations: dict[str, int] = {}
        # Until when each classic member that was asked to, or has, must have joined and synced.
        self.rounds: dict[str, int] = {}
        # The earliest of all deadlines, or earlier: a heartbeat only moves its own.
        self.wake_ms = NEVER
        self.recording = Recording()
        self.history = History()

    @property
    def state(self) -> ConsumerGroupState:
        if self.is_dead:
            return ConsumerGroupState.DEAD
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.epoch > self.target_epoch:
            return ConsumerGroupState.ASSIGNING
        if all(self._has_arrived(member) for member in self.members.values()):
            return ConsumerGroupState.STABLE
        return ConsumerGroupState.RECONCILING

    def check_member(self, member_id: str, instance_id: str | None) -> ErrorCode:
        """NONE if the client is the member it says; an instance has one member id at a time."""
        return check_identity(self.members, self.static_ids, member_id, instance_id)

    def put(self, member: ConsumerMember) -> None:
        """The member is like this from now on; it is new, or takes the place of its former self."""
        before = self.members.get(member.id)
        if before == member:
            return
        self._let_go(before.held - member.held if before is not None else NO_PARTITIONS, member.id)
        for partition in member.held:
            assert self.holders.get(partition, member.id) == member.id, "one holder at a time"
            self.holders[partition] = member.id
        self.members[member.id] = member
        if before is not None and before.instance_id not in (None, member.instance_id):
            del self.static_ids[before.instance_id]
        if member.instance_id is not None:
            self.static_ids[member.instance_id] = member.id
        if member.state is not MemberState.REVOKING:
            self.revocations.pop(member.id, None)
        self.recording.touch(member.id)

    def remove(self, member: ConsumerMember) -> None:
        """Take a member out; what it held is free, and its part of the target nobody's."""
        del self.members[member.id]
        self._let_go(member.held, member.id)
        if member.instance_id is not None and self.static_ids[member.instance_id] == member.id:
            del self.static_ids[member.instance_id]
        self.target.pop(member.id, None)
        self.sessions.pop(member.id, None)
        self.revocations.pop(member.id, None)
        self.rounds.pop(member.id, None)
        self.recording.touch(member.id)

    def replace(self, old: ConsumerMember, new: ConsumerMember) -> None:
        """The process behind a static member is a new one: it has what the old one had."""
        target = self.target.get(old.id, NO_PARTITIONS)
        self.remove(old)
        self.target[new.id] = target
        self.put(new)

    def is_free_for(self, member_id: str, partition: TopicIdPartition) -> bool:
        return self.holders.get(partition, member_id) == member_id

    def set_target(self, target: Mapping[str, Partitions]) -> None:
        """Where the members are to go, made for the present epoch."""
        for member_id in self.members:
            if self.target.get(member_id) != target[member_id]:
                self.recording.touch(member_id)
        self.target = dict(target)
        self.target_epoch = self.epoch

    def expect(self, member_id: str, deadline_ms: int) -> None:
        """The member has just been heard, and must be again by then."""
        self.sessions[member_id] = deadline_ms
        self.wake_ms = min(self.wake_ms, deadline_ms)

    def expect_revocation(self, member_id: str, deadline_ms: int) -> None:
        """The member must have given up by then what it has to; what was said before counts."""
        self.wake_ms = min(self.wake_ms, self.revocations.setdefault(member_id, deadline_ms))

    def expect_round(self, member_id: str, deadline_ms: int) -> None:
        """A classic member must have joined and synced by then; what was said before counts."""
        self.wake_ms = min(self.wake_ms, self.rounds.setdefault(member_id, deadline_ms))

    def first_deadline(self) -> int:
        """The earliest of all deadlines, looked up; NEVER if there is none."""
        return min(self._deadlines(), default=NEVER)

    def _deadlines(self) -> Iterator[int]:
        yield from self.sessions.values()
        yield from self.revocations.values()
        yield from self.rounds.values()

    def _has_arrived(self, member: ConsumerMember) -> bool:
        if member.epoch == AWAY_EPOCH:
            return True
        return member.state is MemberState.STABLE and member.epoch == self.target_epoch

    def _let_go(self, partitions: Partitions, member_id: str) -> None:
        for partition in partitions:
            assert self.holders[partition] == member_id
            del self.holders[partition]
