"""What administrators see of a group."""

from tidemark.partitions.state_machines.groups.consumer.group import ConsumerGroup
from tidemark.partitions.state_machines.groups.group import ClassicGroup, Member
from tidemark.partitions.state_machines.groups.kinds import AnyGroup
from tidemark.partitions.state_machines.groups.requests import GroupState
from tidemark.partitions.state_machines.groups.subscriptions import CONSUMER
from tidemark.protocol.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberDescription:
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupDescription:
    """`protocol` and the members' metadata are empty while no protocol is agreed on."""

    group_id: str
    state: GroupState
    protocol_type: str
    protocol: str = ""
    members: tuple[MemberDescription, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupListing:
    """A group in few words. `kind` is the protocol that its members speak."""

    group_id: str
    state: str
    protocol_type: str
    kind: str


def listing(group: AnyGroup) -> GroupListing:
    match group:
        case ConsumerGroup():
            protocol_type, kind = CONSUMER, "consumer"
        case ClassicGroup():
            protocol_type, kind = group.protocol_type or "", "classic"
    return GroupListing(
        group_id=group.id, state=group.state.value, protocol_type=protocol_type, kind=kind
    )


def describe(group: ClassicGroup) -> GroupDescription:
    is_stable = group.state is GroupState.STABLE
    return GroupDescription(
        group_id=group.id,
        state=group.state,
        protocol_type=group.protocol_type or "",
        protocol=(group.protocol or "") if is_stable else "",
        members=tuple(
            _describe_member(member, group.protocol if is_stable else None)
            for member in group.members.values()
        ),
    )


def _describe_member(member: Member, protocol: str | None) -> MemberDescription:
    return MemberDescription(
        member_id=member.id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        metadata=member.metadata(protocol),
        assignment=member.assignment,
    )
