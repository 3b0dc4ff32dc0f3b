"""Groups as their coordinator describes them: those of either protocol, and why they rebalanced."""

from contextlib import suppress

from tidemark.client.codes import check, only
from tidemark.client.connection import Connection
from tidemark.client.descriptions import (
    BrokerDescription,
    GroupDescription,
    MemberDescription,
    RebalanceDescription,
)
from tidemark.protocol.consumer_protocol import decode_assignment
from tidemark.protocol.errors import ErrorCode, MalformedMessage
from tidemark.protocol.messages import consumer_group_describe as described
from tidemark.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from tidemark.protocol.messages.describe_rebalances import (
    DescribeRebalancesRequest,
    DescribeRebalancesResponse,
)
from tidemark.protocol.types import TopicPartition

CONSUMER_PROTOCOL = "consumer"


async def describe(
    group: str, coordinator: BrokerDescription, connection: Connection
) -> GroupDescription:
    """A group of either protocol. Raises GROUP_ID_NOT_FOUND."""
    if connection.speaks(described.ConsumerGroupDescribeRequest):
        request = described.ConsumerGroupDescribeRequest(
            group_ids=[group], include_authorized_operations=False
        )
        answer = await connection.request(request, described.ConsumerGroupDescribeResponse)
        found = only(answer.groups, f"group {group}")
        if found.error_code != ErrorCode.GROUP_ID_NOT_FOUND:
            check(found.error_code, f"group {group}", found.error_message)
            return _consumers(found, coordinator)
    classic = await connection.request(
        DescribeGroupsRequest(groups=[group]), DescribeGroupsResponse
    )
    (one,) = classic.groups
    check(one.error_code, f"group {group}", one.error_message)
    if one.group_state == "Dead":  # How older versions say that there is none.
        check(ErrorCode.GROUP_ID_NOT_FOUND, f"group {group}")
    return _classic(one, coordinator)


async def describe_rebalances(group: str, connection: Connection) -> list[RebalanceDescription]:
    """The last rebalances, the latest last; none from a broker that does not tell."""
    if not connection.speaks(DescribeRebalancesRequest):
        return []
    answer = await connection.request(
        DescribeRebalancesRequest(groups=[group]), DescribeRebalancesResponse
    )
    found = only(answer.groups, f"group {group}")
    check(found.error_code, f"group {group}")
    return [
        RebalanceDescription(
            generation=each.generation,
            at_ms=each.at_ms,
            reasons=tuple(each.reasons),
            more_reasons=each.more_reasons,
        )
        for each in found.rebalances
    ]


def _consumers(found: described.DescribedGroup, coordinator: BrokerDescription) -> GroupDescription:
    return GroupDescription(
        group=found.group_id,
        state=found.group_state,
        protocol_type=CONSUMER_PROTOCOL,
        assignor=found.assignor_name if found.members else "",
        coordinator=coordinator.node_id,
        members=tuple(_consumer(member) for member in found.members),
        kind="consumer",
    )


def _consumer(member: described.Member) -> MemberDescription:
    return MemberDescription(
        member_id=member.member_id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        assignment=tuple(
            TopicPartition(topic.topic_name, partition)
            for topic in member.assignment.topic_partitions
            for partition in topic.partitions
        ),
    )


def _classic(one: DescribedGroup, coordinator: BrokerDescription) -> GroupDescription:
    return GroupDescription(
        group=one.group_id,
        state=one.group_state,
        protocol_type=one.protocol_type,
        assignor=one.protocol_data,
        coordinator=coordinator.node_id,
        members=tuple(
            _member(member, is_consumer=one.protocol_type == CONSUMER_PROTOCOL)
            for member in one.members
        ),
    )


def _member(member: DescribedGroupMember, *, is_consumer: bool) -> MemberDescription:
    assignment: tuple[TopicPartition, ...] = ()
    if is_consumer and member.member_assignment:
        # Opaque bytes of someone else's making: a description can do without them.
        with suppress(MalformedMessage):
            assignment = decode_assignment(member.member_assignment)
    return MemberDescription(
        member_id=member.member_id,
        instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        assignment=assignment,
    )
