"""LeaveGroup: members go; one up to version 2, several from version 3 (trap G12)."""

from tidemark.broker.network.requests import Pending, RequestContext
from tidemark.broker.node import Node
from tidemark.partitions.state_machines.groups.requests import Leave, LeaveAnswer, Leaver
from tidemark.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberResponse,
)

_SEVERAL_SINCE = 3


def handle(
    node: Node, request: LeaveGroupRequest, context: RequestContext
) -> Pending[LeaveGroupResponse]:
    if context.api_version < _SEVERAL_SINCE:
        leave = Leave(group_id=request.group_id, leavers=(Leaver(member_id=request.member_id),))
        return node.coordinator.ask(leave, LeaveAnswer, _respond_to_one)
    leavers = tuple(
        Leaver(
            member_id=member.member_id,
            instance_id=member.group_instance_id,
            reason=member.reason or "",
        )
        for member in request.members
    )
    leave = Leave(group_id=request.group_id, leavers=leavers)
    return node.coordinator.ask(leave, LeaveAnswer, _respond)


def _respond_to_one(answer: LeaveAnswer) -> LeaveGroupResponse:
    errors = [error for _, error in answer.members]
    return LeaveGroupResponse(error_code=answer.error or errors[0])


def _respond(answer: LeaveAnswer) -> LeaveGroupResponse:
    return LeaveGroupResponse(
        error_code=answer.error,
        members=[
            MemberResponse(
                member_id=leaver.member_id, group_instance_id=leaver.instance_id, error_code=error
            )
            for leaver, error in answer.members
        ],
    )
