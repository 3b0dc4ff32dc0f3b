"""What a member of a group asks its coordinator, in Kafka's classic protocol, as requests. Pure."""

from collections.abc import Mapping, Sequence
from typing import Final

from tidemark.client.coordinator import Membership
from tidemark.client.group_settings import GroupSettings
from tidemark.protocol.consumer_protocol import (
    Subscription,
    encode_assignment,
    encode_subscription,
)
from tidemark.protocol.messages.heartbeat import HeartbeatRequest
from tidemark.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from tidemark.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from tidemark.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tidemark.protocol.types import TopicPartition

_PROTOCOL_TYPE: Final = "consumer"


def join_request(
    settings: GroupSettings,
    membership: Membership,
    topics: tuple[str, ...],
    owned: frozenset[TopicPartition],
) -> JoinGroupRequest:
    """Becoming a member of the next generation; `owned` is what is read in this one."""
    subscription = encode_subscription(
        Subscription(topics=topics, owned=owned, generation=membership.generation)
    )
    return JoinGroupRequest(
        group_id=settings.group,
        session_timeout_ms=int(settings.session_timeout_seconds * 1000),
        rebalance_timeout_ms=int(settings.rebalance_timeout_seconds * 1000),
        member_id=membership.member_id,
        group_instance_id=settings.instance_id,
        protocol_type=_PROTOCOL_TYPE,
        protocols=[
            JoinGroupRequestProtocol(name=name, metadata=subscription)
            for name in settings.assignors
        ],
    )


def sync_request(
    group: str,
    membership: Membership,
    assignor: str | None,
    assignments: Mapping[str, Sequence[TopicPartition]],
) -> SyncGroupRequest:
    """Getting what the generation gives. Its leader says what each member gets, by member id."""
    return SyncGroupRequest(
        group_id=group,
        generation_id=membership.generation,
        member_id=membership.member_id,
        group_instance_id=membership.instance_id,
        protocol_type=_PROTOCOL_TYPE,
        protocol_name=assignor,
        assignments=[
            SyncGroupRequestAssignment(member_id=member, assignment=encode_assignment(partitions))
            for member, partitions in assignments.items()
        ],
    )


def heartbeat_request(group: str, membership: Membership) -> HeartbeatRequest:
    """Being there still."""
    return HeartbeatRequest(
        group_id=group,
        generation_id=membership.generation,
        member_id=membership.member_id,
        group_instance_id=membership.instance_id,
    )


def leave_request(group: str, membership: Membership, version: int) -> LeaveGroupRequest:
    """Saying goodbye, in the words of that version of LeaveGroup."""
    if version < 3:
        return LeaveGroupRequest(group_id=group, member_id=membership.member_id)
    return LeaveGroupRequest(
        group_id=group, members=[MemberIdentity(member_id=membership.member_id)]
    )
