"""DescribeCluster: the brokers, without the topics."""

from tidemark.broker.metadata.authorized_operations import ON_CLUSTER
from tidemark.broker.network.requests import RequestContext
from tidemark.broker.node import Node
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from tidemark.protocol.messages.metadata import NOT_ASKED

_BROKERS = 1


def handle(
    node: Node, request: DescribeClusterRequest, context: RequestContext
) -> DescribeClusterResponse:
    if request.endpoint_type != _BROKERS:
        raise RequestError(ErrorCode.INVALID_REQUEST, "this is a broker: ask it for brokers")
    broker = DescribeClusterBroker(
        broker_id=node.node_id,
        host=context.listener.host,
        port=context.listener.port,
        rack=node.settings.broker_rack,
    )
    return DescribeClusterResponse(
        cluster_id=node.cluster_id,
        controller_id=node.node_id,
        brokers=(broker,),
        cluster_authorized_operations=(
            ON_CLUSTER if request.include_cluster_authorized_operations else NOT_ASKED
        ),
    )
