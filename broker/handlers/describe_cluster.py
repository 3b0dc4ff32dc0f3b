"""DescribeCluster: the brokers, without the topics."""

from tidemark.broker.network.requests import RequestContext
from tidemark.broker.node import Node
from tidemark.protocol.acls import ResourceType
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from tidemark.protocol.messages.metadata import NOT_ASKED

NOBODY = -1
"""In place of a broker's number."""
_BROKERS = 1
_CONTROLLERS = 2


def handle(
    node: Node, request: DescribeClusterRequest, context: RequestContext
) -> DescribeClusterResponse:
    _check_endpoint_type(request.endpoint_type)
    controller = node.brokers.controller_for_clients
    shown = node.brokers.shown_to(context.session, dead_too=request.include_fenced_brokers)
    return DescribeClusterResponse(
        cluster_id=node.cluster_id,
        controller_id=NOBODY if controller is None else controller,
        brokers=[
            DescribeClusterBroker(
                broker_id=broker.node_id,
                host=broker.address.host,
                port=broker.address.port,
                rack=broker.rack,
                is_fenced=not broker.is_alive,
            )
            for broker in shown
        ],
        cluster_authorized_operations=(
            node.access.operations(context.session, ResourceType.CLUSTER)
            if request.include_cluster_authorized_operations
            else NOT_ASKED
        ),
    )


def _check_endpoint_type(asked: int) -> None:
    """Clients with `bootstrap.controllers` ask for controllers, and say what is wrong with it when
    they are told so (KIP-919)."""
    if asked == _CONTROLLERS:
        raise RequestError(
            ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            "this is a broker: ask it for brokers (bootstrap.servers, not bootstrap.controllers)",
        )
    if asked != _BROKERS:
        raise RequestError(
            ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"there are no endpoints of type {asked}"
        )
