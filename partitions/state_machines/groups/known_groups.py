"""The groups of one partition of `__consumer_offsets`, for those who only look."""

from collections.abc import Iterable, Sequence

from tidemark.partitions.state_machines.groups.consumer.describing import (
    ConsumerGroupDescription,
    describe_consumer,
)
from tidemark.partitions.state_machines.groups.consumer.group import ConsumerGroup
from tidemark.partitions.state_machines.groups.describe import (
    GroupDescription,
    GroupListing,
    describe,
    listing,
)
from tidemark.partitions.state_machines.groups.group import ClassicGroup
from tidemark.partitions.state_machines.groups.history import Rebalance
from tidemark.partitions.state_machines.groups.kinds import AnyGroup
from tidemark.partitions.state_machines.groups.offsets import Offsets, OffsetTable
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.types import TopicPartition


class KnownGroups:
    """Groups by id, and their commits."""

    def __init__(self, offsets: OffsetTable, groups: Iterable[AnyGroup]) -> None:
        self._offsets = offsets
        self._groups: dict[str, AnyGroup] = {group.id: group for group in groups}

    def committed(self, group_id: str) -> Offsets:
        """The group's durable commits; none for a group that is not known (trap G8)."""
        return self._offsets.of(group_id)

    def is_unstable(self, group_id: str, partition: TopicPartition) -> bool:
        """Whether a transaction that is not decided may yet commit another offset (trap G8)."""
        return self._offsets.is_unstable(group_id, partition)

    def describe(self, group_id: str) -> GroupDescription | None:
        """A group of the classic protocol."""
        group = self._groups.get(group_id)
        return describe(group) if isinstance(group, ClassicGroup) else None

    def describe_consumer(self, group_id: str) -> ConsumerGroupDescription | None:
        """A group of the consumer protocol."""
        group = self._groups.get(group_id)
        return describe_consumer(group) if isinstance(group, ConsumerGroup) else None

    def check_member(self, group_id: str, member_id: str, epoch: int) -> ErrorCode:
        """Whether a client that asks for commits is the member it says; NONE, or why not.

        Groups of the classic protocol have no such question.
        """
        group = self._groups.get(group_id)
        if not isinstance(group, ConsumerGroup) or not member_id:
            return ErrorCode.NONE
        member = group.members.get(member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return member.check_epoch(epoch)

    def rebalances(self, group_id: str) -> Sequence[Rebalance] | None:
        """Why the group rebalanced, the latest last; None if there is no such group."""
        group = self._groups.get(group_id)
        return None if group is None else group.history.rebalances

    def list_groups(self) -> list[GroupListing]:
        return [listing(group) for group in self._groups.values()]

    def figures(self) -> list[tuple[str, int, Offsets]]:
        """Every group's id, number of members and commits. May be called from any thread."""
        return [
            (group.id, len(group.members), dict(self._offsets.of(group.id)))
            for group in list(self._groups.values())
        ]
