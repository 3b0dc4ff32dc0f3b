"""ConsumerGroupDescribe: groups of the consumer protocol, what members have and are to have."""

from tidemark.broker.network.requests import RequestContext
from tidemark.broker.node import Node
from tidemark.broker.steps import Steps, distinct
from tidemark.partitions.state_machines.groups.consumer.describing import (
    ConsumerGroupDescription,
    ConsumerMemberDescription,
)
from tidemark.partitions.state_machines.groups.topic_view import Partitions, by_topic
from tidemark.protocol.acls import ResourceType
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.consumer_group_describe import (
    CLASSIC_MEMBER,
    CONSUMER_MEMBER,
    NOT_ASKED,
    Assignment,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
    TopicPartitions,
)


async def handle(
    node: Node, request: ConsumerGroupDescribeRequest, context: RequestContext
) -> ConsumerGroupDescribeResponse:
    steps, groups = Steps(), list[DescribedGroup]()
    for group_id in distinct(request.group_ids):
        operations = NOT_ASKED
        if request.include_authorized_operations:
            operations = node.access.operations(context.session, ResourceType.GROUP, group_id)
        group = _describe(node, group_id, operations)
        groups.append(group)
        await steps.did(1 + len(group.members))
    return ConsumerGroupDescribeResponse(groups=groups)


def _describe(node: Node, group_id: str, operations: int) -> DescribedGroup:
    try:
        if not group_id:
            raise RequestError(ErrorCode.INVALID_GROUP_ID, "a group needs a name")
        described = node.coordinator.describe_consumer(group_id)
        if described is None:
            # Whoever asks about any group goes on with DescribeGroups then.
            raise RequestError(
                ErrorCode.GROUP_ID_NOT_FOUND,
                f"there is no group {group_id} of the consumer protocol",
            )
    except RequestError as error:
        return DescribedGroup(
            error_code=error.code,
            error_message=error.message,
            group_id=group_id,
            group_state="",
            group_epoch=0,
            assignment_epoch=0,
            assignor_name="",
            members=(),
        )
    return _respond(node, described, operations)


def _respond(node: Node, described: ConsumerGroupDescription, operations: int) -> DescribedGroup:
    return DescribedGroup(
        group_id=described.group_id,
        group_state=described.state.value,
        group_epoch=described.epoch,
        assignment_epoch=described.target_epoch,
        assignor_name=described.assignor,
        members=[_member(node, member) for member in described.members],
        authorized_operations=operations,
    )


def _member(node: Node, described: ConsumerMemberDescription) -> Member:
    member = described.member
    return Member(
        member_id=member.id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topics),
        subscribed_topic_regex=member.pattern,
        assignment=_assignment(node, member.assigned),
        target_assignment=_assignment(node, described.target),
        member_type=CLASSIC_MEMBER if member.is_classic else CONSUMER_MEMBER,
    )


def _assignment(node: Node, partitions: Partitions) -> Assignment:
    """Without topics that were deleted: nobody could say what they were called."""
    found = ((node.topics.by_id(topic_id), numbers) for topic_id, numbers in by_topic(partitions))
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic.id, topic_name=topic.name, partitions=numbers)
            for topic, numbers in found
            if topic is not None
        ]
    )
