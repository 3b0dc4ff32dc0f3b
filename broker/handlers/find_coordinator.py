"""FindCoordinator: which broker a group or a transactional id belongs to; one key, or several from
version 4 (G9)."""

from tidemark.broker.config import Address
from tidemark.broker.groups.coordinator import GroupCoordinator
from tidemark.broker.handlers.unheard_leaders import leader_of
from tidemark.broker.network.requests import RequestContext
from tidemark.broker.node import Node
from tidemark.broker.steps import Steps
from tidemark.broker.transactions.coordinator import TransactionCoordinator
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from tidemark.protocol.types import NodeId


async def handle(
    node: Node, request: FindCoordinatorRequest, context: RequestContext
) -> FindCoordinatorResponse:
    if context.api_version >= 4:
        steps, coordinators = Steps(), list[Coordinator]()
        for key in request.coordinator_keys:
            coordinators.append(await _find(node, key, request.key_type, context))
            await steps.did(1)
        return FindCoordinatorResponse(coordinators=coordinators)
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
        coordinator = _coordinator(node, key_type)
        await coordinator.ensure_topic()
        leader = await _leader(node, coordinator, key)
        address = _address(node, leader, context)
    except RequestError as error:
        return Coordinator(
            key=key,
            node_id=-1,
            host="",
            port=-1,
            error_code=error.code,
            error_message=error.message,
        )
    return Coordinator(key=key, node_id=leader, host=address.host, port=address.port)


async def _leader(
    node: Node, coordinator: GroupCoordinator | TransactionCoordinator, key: str
) -> NodeId:
    """Raises `RequestError` if nobody knows who it is now."""
    try:
        return coordinator.find(key)
    except RequestError:
        place = coordinator.partition_of(key)
        leader = None if place is None else await leader_of(node, place)
        if leader is None:
            raise
        return leader


def _coordinator(node: Node, key_type: int) -> GroupCoordinator | TransactionCoordinator:
    match key_type:
        case 0:
            return node.coordinator
        case 1:
            return node.transactions
    raise RequestError(
        ErrorCode.INVALID_REQUEST,
        f"groups (key type 0) and transactions (1) have coordinators; {key_type} is neither",
    )


def _address(node: Node, leader: NodeId, context: RequestContext) -> Address:
    """Where this client reaches that broker. Raises `RequestError` if nobody knows."""
    if leader == node.node_id:
        return context.listener
    address = node.brokers.address(leader, context.session.listener_name)
    if address is None:
        raise RequestError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return address
