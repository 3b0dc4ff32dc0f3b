"""What administrators see of a group of the consumer protocol."""

from tidemark.partitions.state_machines.groups.consumer.group import (
    ConsumerGroup,
    ConsumerGroupState,
)
from tidemark.partitions.state_machines.groups.consumer.member import ConsumerMember
from tidemark.partitions.state_machines.groups.topic_view import NO_PARTITIONS, Partitions
from tidemark.protocol.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerMemberDescription:
    member: ConsumerMember
    target: Partitions


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupDescription:
    group_id: str
    state: ConsumerGroupState
    epoch: int
    target_epoch: int
    assignor: str
    members: tuple[ConsumerMemberDescription, ...]


def describe_consumer(group: ConsumerGroup) -> ConsumerGroupDescription:
    return ConsumerGroupDescription(
        group_id=group.id,
        state=group.state,
        epoch=group.epoch,
        target_epoch=group.target_epoch,
        assignor=group.assignor,
        members=tuple(
            ConsumerMemberDescription(
                member=member, target=group.target.get(member.id, NO_PARTITIONS)
            )
            for member in group.members.values()
        ),
    )
