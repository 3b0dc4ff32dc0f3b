"""JoinGroup: a member enters the group's next generation, and waits until it is formed."""

from tidemark.broker.network.requests import Pending, RequestContext
from tidemark.broker.node import Node
from tidemark.partitions.state_machines.groups.requests import Join, JoinAnswer
from tidemark.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
)

_MEMBER_ID_REQUIRED_SINCE = 4
_SKIP_ASSIGNMENT_SINCE = 9


def handle(
    node: Node, request: JoinGroupRequest, context: RequestContext
) -> Pending[JoinGroupResponse]:
    rebalance_ms = request.rebalance_timeout_ms
    join = Join(
        group_id=request.group_id,
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        client_id=context.client_id or "",
        client_host=f"/{context.client_host}",
        protocol_type=request.protocol_type,
        protocols=tuple((protocol.name, protocol.metadata) for protocol in request.protocols),
        session_timeout_ms=request.session_timeout_ms,
        # Version 0 has one timeout for both.
        rebalance_timeout_ms=rebalance_ms if rebalance_ms >= 0 else request.session_timeout_ms,
        reason=request.reason or "",
        new_member_id=node.coordinator.new_member_id(context.client_id, request.group_instance_id),
        requires_member_id=context.api_version >= _MEMBER_ID_REQUIRED_SINCE,
        may_skip_assignment=context.api_version >= _SKIP_ASSIGNMENT_SINCE,
        may_know=node.access.topics_known(context.session),
    )
    return node.coordinator.ask(join, JoinAnswer, _respond)


def _respond(answer: JoinAnswer) -> JoinGroupResponse:
    return JoinGroupResponse(
        error_code=answer.error,
        generation_id=answer.generation,
        protocol_type=answer.protocol_type,
        protocol_name=answer.protocol,
        leader=answer.leader,
        skip_assignment=answer.skip_assignment,
        member_id=answer.member_id,
        members=[
            JoinGroupResponseMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                metadata=member.metadata,
            )
            for member in answer.members
        ],
    )
