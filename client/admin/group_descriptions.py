"""Groups as their coordinator describes them: those of either protocol, and why they rebalanced."""

from contextlib import suppress

from tidemark.client.codes import check
from tidemark.client.connection import Connection
from tidemark.client.consumer_protocol import decode_assignment
from tidemark.client.descriptions import (
    BrokerDescription,
    GroupDescription,
    MemberDescription,
    RebalanceDescription,
)
from tidemark.protocol.errors import ErrorCode, MalformedMessage
from tidemark.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeGroup,
    ConsumerGroupDescribeMember,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
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
    if connection.speaks(ConsumerGroupDescribeRequest):
        request = ConsumerGroupDescribeRequest(
            group_ids=[group], include_authorized_operations=False
        )
        answer = await connection.request(request, ConsumerGroupDescribeResponse)
        (found,) = answer.groups
        if found.error_code != ErrorCode.GROUP_ID_NOT_FOUND:
            check(found.error_code, f"group {group}", found.error_message)
            return _consumers(found, coordinator)
    classic = await connection.request(
        DescribeGroupsRequest(groups=[group]), DescribeGroupsResponse
    )
    (described,) = classic.groups
    check(described.error_code, f"group {group}", described.error_message)
    if described.group_state == "Dead":  # How older versions say that there is none.
        check(ErrorCode.GROUP_ID_NOT_FOUND, f"group {group}")
    return _classic(described, coordinator)


async def describe_rebalances(group: str, connection: Connection) -> list[RebalanceDescription]:
    """The last rebalances, the latest last; none from a broker that does not tell."""
    if not connection.speaks(DescribeRebalancesRequest):
        return []
    answer = await connection.request(
        DescribeRebalancesRequest(groups=[group]), DescribeRebalancesResponse
    )
    (found,) = answer.groups
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


def _consumers(
    found: ConsumerGroupDescribeGroup, coordinator: BrokerDescription
) -> GroupDescription:
    return GroupDescription(
        group=found.group_id,
        state=found.group_state,
        protocol_type=CONSUMER_PROTOCOL,
        assignor=found.assignor_name if found.members else "",
        coordinator=coordinator.node_id,
        members=tuple(_consumer(member) for member in found.members),
        kind="consumer",
    )


def _consumer(member: ConsumerGroupDescribeMember) -> MemberDescription:
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


def _classic(described: DescribedGroup, coordinator: BrokerDescription) -> GroupDescription:
    return GroupDescription(
        group=described.group_id,
        state=described.group_state,
        protocol_type=described.protocol_type,
        assignor=described.protocol_data,
        coordinator=coordinator.node_id,
        members=tuple(
            _member(member, is_consumer=described.protocol_type == CONSUMER_PROTOCOL)
            for member in described.members
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
