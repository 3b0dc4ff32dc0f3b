"""SetBrokerState: drain a broker, take its replicas away, have it lead again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tidemark.broker.balancing.broker_states import Consequences, Refused
from tidemark.broker.handlers.balance_leaders import refused_moves
from tidemark.broker.handlers.change import Change
from tidemark.broker.network.requests import RequestContext
from tidemark.partitions.state_machines.cluster_values import BrokerState
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.set_broker_state import (
    SetBrokerStateRequest,
    SetBrokerStateResponse,
)
from tidemark.protocol.types import NodeId

if TYPE_CHECKING:
    from tidemark.broker.node import Node


async def handle(
    node: Node, request: SetBrokerStateRequest, _context: RequestContext
) -> SetBrokerStateResponse:
    """Answers on the leader of the metadata, once the state is set; what follows takes its time."""
    state = _state(request.state)
    try:
        found = await node.balancing.set_state(
            NodeId(request.node_id), state, force=request.force, dry_run=request.dry_run
        )
    except Refused as error:
        return _response(error.consequences, error)
    return _response(found, None)


def _state(name: str) -> BrokerState:
    try:
        return BrokerState(name)
    except ValueError as error:
        known = ", ".join(BrokerState)
        raise RequestError(
            ErrorCode.INVALID_REQUEST, f"{name!r} is no state of a broker: those are {known}"
        ) from error


def _response(found: Consequences, error: RequestError | None) -> SetBrokerStateResponse:
    return SetBrokerStateResponse(
        error_code=ErrorCode.NONE if error is None else error.code,
        error_message=None if error is None else error.message,
        leaders=found.leaders,
        replicas=found.replicas,
        size_bytes=found.size_bytes,
        refusals=refused_moves(found.refusals),
    )


CHANGE: Final = Change(handle=handle, response=SetBrokerStateResponse, may_repeat=True)
