"""FindCoordinator: which broker a group belongs to; one key, or several from version 4 (G9)."""

from tidemark.broker.network.requests import RequestContext
from tidemark.broker.node import Node
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

_GROUP = 0


async def handle(
    node: Node, request: FindCoordinatorRequest, context: RequestContext
) -> FindCoordinatorResponse:
    if context.api_version >= 4:
        return FindCoordinatorResponse(
            coordinators=[
                await _find(node, key, request.key_type, context)
                for key in request.coordinator_keys
            ]
        )
    found = await _find(node, request.key, request.key_type, context)
    return FindCoordinatorResponse(
        error_code=found.error_code,
        error_message=found.error_message,
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


async def _find(node: Node, key: str, key_type: int, context: RequestContext) -> Coordinator:
    try:
        if key_type != _GROUP:
            raise RequestError(
                ErrorCode.INVALID_REQUEST, "this broker coordinates groups and no transactions"
            )
        await node.coordinator.ensure_topic()
        node.coordinator.check_serves(key)
    except RequestError as error:
        return Coordinator(
            key=key,
            node_id=-1,
            host="",
            port=-1,
            error_code=error.code,
            error_message=error.message,
        )
    listener = context.listener
    return Coordinator(key=key, node_id=node.node_id, host=listener.host, port=listener.port)
