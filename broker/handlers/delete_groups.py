"""DeleteGroups: groups without members go, with their commits."""

from tidemark.broker.network.requests import RequestContext
from tidemark.broker.node import Node
from tidemark.partitions.state_machines.groups.requests import DeleteAnswer, DeleteGroup
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)


async def handle(
    node: Node, request: DeleteGroupsRequest, context: RequestContext
) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(
        results=[
            DeletableGroupResult(group_id=group_id, error_code=await _delete(node, group_id))
            for group_id in request.groups_names
        ]
    )


async def _delete(node: Node, group_id: str) -> ErrorCode:
    if not group_id:
        return ErrorCode.INVALID_GROUP_ID
    try:
        answer = await node.coordinator.wait_answer(DeleteGroup(group_id=group_id), DeleteAnswer)
    except RequestError as error:
        return error.code
    return answer.error
