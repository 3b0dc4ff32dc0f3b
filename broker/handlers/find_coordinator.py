"""FindCoordinator: which broker a group or a transactional id belongs to; one key, or several from
version 4 (G9).

An election is waited out, and a broker that may be cut off hangs up on who keeps asking it. When a
transactional producer of librdkafka was told three times in a row, within half a second, that its
group has no coordinator, it asks no more until one of its connections comes or goes, which may be
after minutes: `send_offsets_to_transaction` hangs, past its timeout (librdkafka#3847, #5456).
"""

from collections.abc import Sequence
from typing import Final

import trio

from tidemark.broker.config import Address
from tidemark.broker.groups.coordinator import GroupCoordinator
from tidemark.broker.handlers.unheard_leaders import leader_of
from tidemark.broker.metadata.brokers import Brokers
from tidemark.broker.network.requests import AskAnother, RequestContext, Session
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

_WAIT_SECONDS: Final = 2.0
"""So long a request waits for somebody to be known: most elections are over by then."""
_LOOK_SECONDS: Final = 0.05
_IN_VAIN_SECONDS: Final = 3.0
"""For so long a client may ask a broker in vain that does not hear most of the others."""


async def handle(
    node: Node, request: FindCoordinatorRequest, context: RequestContext
) -> FindCoordinatorResponse:
    asked_at = trio.current_time()
    has_many = context.api_version >= 4
    steps, coordinators = Steps(), list[Coordinator]()
    for key in request.coordinator_keys if has_many else [request.key]:
        found = await _find(node, key, request.key_type, context, asked_at + _WAIT_SECONDS)
        coordinators.append(found)
        await steps.did(1)
    _check_helps(node.brokers, context.session, coordinators, asked_at)
    if has_many:
        return FindCoordinatorResponse(coordinators=coordinators)
    (found,) = coordinators
    return FindCoordinatorResponse(
        error_code=found.error_code,
        error_message=found.error_message,
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


def _check_helps(
    brokers: Brokers, session: Session, found: Sequence[Coordinator], asked_at: float
) -> None:
    """Raises `AskAnother` if the client comes again and again for a coordinator that is not known
    here, and this broker may be cut off."""
    is_in_vain = any(each.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE for each in found)
    if brokers.hears_most or not is_in_vain:
        session.seeks_since = None
    elif session.seeks_since is None:
        session.seeks_since = asked_at
    elif trio.current_time() - session.seeks_since > _IN_VAIN_SECONDS:
        raise AskAnother("this broker may be cut off from those that know the coordinator")


async def _find(
    node: Node, key: str, key_type: int, context: RequestContext, until: float
) -> Coordinator:
    try:
        coordinator = _coordinator(node, key_type)
        await coordinator.ensure_topic()
        leader = await _wait_leader(node, coordinator, key, until)
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


async def _wait_leader(
    node: Node, coordinator: GroupCoordinator | TransactionCoordinator, key: str, until: float
) -> NodeId:
    """Raises `RequestError` if nobody knows who it is by then, or this broker is to stop."""
    while True:
        try:
            return coordinator.find(key)
        except RequestError:
            place = coordinator.partition_of(key)
            leader = None if place is None else await leader_of(node, place)
            if leader is not None:
                return leader
            if coordinator.has_resigned or trio.current_time() >= until:
                raise
        await trio.sleep(_LOOK_SECONDS)


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
