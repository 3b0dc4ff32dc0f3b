"""DescribeGroups: state and members of groups (trap G13)."""

from tidemark.broker.network.requests import RequestContext
from tidemark.broker.node import Node
from tidemark.broker.steps import Steps, distinct
from tidemark.partitions.state_machines.groups.describe import GroupDescription
from tidemark.partitions.state_machines.groups.requests import GroupState
from tidemark.protocol.acls import ResourceType
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.describe_groups import (
    NOT_ASKED,
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)

_NOT_FOUND_SINCE = 6


async def handle(
    node: Node, request: DescribeGroupsRequest, context: RequestContext
) -> DescribeGroupsResponse:
    steps, groups = Steps(), list[DescribedGroup]()
    for group_id in distinct(request.groups):
        operations = NOT_ASKED
        if request.include_authorized_operations:
            operations = node.access.operations(context.session, ResourceType.GROUP, group_id)
        group = _describe(node, group_id, context.api_version, operations)
        groups.append(group)
        await steps.did(1 + len(group.members))
    return DescribeGroupsResponse(groups=groups)


def _describe(node: Node, group_id: str, api_version: int, operations: int) -> DescribedGroup:
    try:
        description = node.coordinator.describe(group_id)
        if description is None and api_version >= _NOT_FOUND_SINCE:
            raise _not_found(node, group_id)
    except RequestError as error:
        is_gone = error.code is ErrorCode.GROUP_ID_NOT_FOUND
        return DescribedGroup(
            error_code=error.code,
            error_message=error.message if api_version >= _NOT_FOUND_SINCE else None,
            group_id=group_id,
            group_state=GroupState.DEAD.value if is_gone else "",
            protocol_type="",
            protocol_data="",
            members=(),
        )
    if description is None:
        description = GroupDescription(group_id=group_id, state=GroupState.DEAD, protocol_type="")
    return _respond(description, operations)


def _not_found(node: Node, group_id: str) -> RequestError:
    is_other = node.coordinator.describe_consumer(group_id) is not None
    sentence = (
        f"group {group_id} is one of the consumer protocol: ask ConsumerGroupDescribe"
        if is_other
        else f"there is no group {group_id}"
    )
    return RequestError(ErrorCode.GROUP_ID_NOT_FOUND, sentence)


def _respond(description: GroupDescription, operations: int) -> DescribedGroup:
    return DescribedGroup(
        group_id=description.group_id,
        group_state=description.state.value,
        protocol_type=description.protocol_type,
        protocol_data=description.protocol,
        members=[
            DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata,
                member_assignment=member.assignment,
            )
            for member in description.members
        ],
        authorized_operations=operations,
    )
