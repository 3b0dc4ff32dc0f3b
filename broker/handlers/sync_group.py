"""SyncGroup: a member waits for its assignment; the leader brings everybody's."""

from tidemark.broker.network.requests import Answer, RequestContext
from tidemark.broker.node import Node
from tidemark.partitions.state_machines.groups.requests import Sync, SyncAnswer
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

_PROTOCOL_REQUIRED_SINCE = 5


def handle(
    node: Node, request: SyncGroupRequest, context: RequestContext
) -> Answer[SyncGroupResponse]:
    names_protocol = request.protocol_type is not None and request.protocol_name is not None
    if context.api_version >= _PROTOCOL_REQUIRED_SINCE and not names_protocol:
        return _respond(SyncAnswer(error=ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
    if node.coordinator.is_being_read(request.group_id):
        # Nor is this expected by clients, as an answer to this request; and a rebalance whose
        # members had not all come this far is begun anew.
        return _respond(SyncAnswer(error=ErrorCode.REBALANCE_IN_PROGRESS))
    sync = Sync(
        group_id=request.group_id,
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        generation=request.generation_id,
        protocol_type=request.protocol_type,
        protocol=request.protocol_name,
        assignments={given.member_id: given.assignment for given in request.assignments},
    )
    return node.coordinator.ask(sync, SyncAnswer, _respond)


def _respond(answer: SyncAnswer) -> SyncGroupResponse:
    return SyncGroupResponse(
        error_code=answer.error,
        protocol_type=answer.protocol_type,
        protocol_name=answer.protocol,
        assignment=answer.assignment,
    )
