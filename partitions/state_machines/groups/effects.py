"""What goes into a step of the coordinator beside the request, and what comes out of it.

A step never waits. It says whom to answer now and what to append to the log; an answer that
promises durability is kept back until the caller reports that the write it hangs on is durable.
"""

from collections.abc import Sequence
from dataclasses import field
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from tidemark.partitions.state_machines.groups.group import ClassicGroup
from tidemark.partitions.state_machines.groups.requests import Answer, CommittingProducer
from tidemark.partitions.state_machines.groups.settings import GroupSettings
from tidemark.partitions.state_machines.instant import Instant
from tidemark.partitions.state_machines.token import Token
from tidemark.protocol.messages.consumer_group_records import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataValue,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataValue,
)
from tidemark.protocol.messages.consumer_offsets import (
    CoordinatorKey,
    GroupMetadataValue,
    OffsetCommitValue,
)
from tidemark.protocol.types import ProducerId
from tidemark.protocol.values import dataclass

if TYPE_CHECKING:
    from tidemark.partitions.state_machines.groups.consumer.group import ConsumerGroup

RecordValue: TypeAlias = (
    OffsetCommitValue
    | GroupMetadataValue
    | ConsumerGroupMetadataValue
    | ConsumerGroupMemberMetadataValue
    | ConsumerGroupTargetAssignmentMetadataValue
    | ConsumerGroupTargetAssignmentMemberValue
    | ConsumerGroupCurrentMemberAssignmentValue
)


class LogRecord(NamedTuple):
    """A record of `__consumer_offsets`; no value is a tombstone. Every key has a `group`."""

    key: CoordinatorKey
    value: RecordValue | None


class Reply(NamedTuple):
    token: Token
    answer: Answer


@dataclass(frozen=True, slots=True)
class Write:
    """Records to append as one batch. Writes are appended, and reported, in their order."""

    number: int
    records: tuple[LogRecord, ...]
    producer: CommittingProducer | None = None
    """Whose transaction they are in, if they are in one."""

    @property
    def producer_id(self) -> ProducerId | None:
        return None if self.producer is None else self.producer.id


@dataclass(slots=True)
class Effects:
    """What a step came to. The caller replies at once, and appends the writes in order."""

    replies: list[Reply] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ReplyWhenStored:
    token: Token
    answer: Answer


@dataclass(frozen=True, slots=True)
class AssignmentStored:
    """A generation's assignment is durable, so that its members may have it."""

    group: ClassicGroup
    generation: int
    assignments: dict[str, bytes]


@dataclass(frozen=True, slots=True)
class StaticMemberStored:
    """A static member's new id is durable, so that the member may be told it."""

    group: ClassicGroup
    member_id: str
    token: Token
    answer: Answer


@dataclass(frozen=True, slots=True)
class GroupDeleted:
    """A group's tombstones are durable. Nobody waits if it expired by itself."""

    group: "ClassicGroup | ConsumerGroup"
    token: Token | None
    answer: Answer


@dataclass(frozen=True, slots=True)
class GroupRecorded:
    """What has changed in a group of the consumer protocol is durable."""

    group: "ConsumerGroup"


@dataclass(frozen=True, slots=True)
class GroupDowngraded:
    """A group of the consumer protocol is in the log as the classic one that it is to be."""

    group: "ConsumerGroup"
    classic: ClassicGroup


@dataclass(frozen=True, slots=True)
class NothingMore:
    """A write that nobody waits for."""


Then: TypeAlias = (
    ReplyWhenStored
    | AssignmentStored
    | StaticMemberStored
    | GroupDeleted
    | GroupRecorded
    | GroupDowngraded
    | NothingMore
)
"""What a write makes possible once it is durable."""


class Unstored(NamedTuple):
    """A write that was handed out and not reported yet."""

    write: Write
    then: Then


class Turn:
    """One step at work: its time and settings, and where its effects gather."""

    __slots__ = ("_unstored", "_write_number", "at", "effects", "settings")

    def __init__(
        self, at: Instant, settings: GroupSettings, unstored: dict[int, Unstored], write_number: int
    ) -> None:
        self.at = at
        self.settings = settings
        self.effects = Effects()
        self._unstored = unstored
        self._write_number = write_number

    def reply(self, token: Token, answer: Answer) -> None:
        self.effects.replies.append(Reply(token, answer))

    def persist(
        self,
        records: Sequence[LogRecord],
        then: Then,
        producer: CommittingProducer | None = None,
    ) -> None:
        """Have `records` appended, and `then` happen once they are durable."""
        write = Write(self._write_number, tuple(records), producer)
        self._write_number += 1
        self._unstored[write.number] = Unstored(write, then)
        self.effects.writes.append(write)
