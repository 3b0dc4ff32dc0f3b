"""ListConfigResources: the topics and brokers, and the groups that have configs of their own."""

from tidemark.broker.network.requests import RequestContext
from tidemark.broker.node import Node
from tidemark.protocol.configs import ConfigResourceType
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.messages.list_config_resources import (
    CLIENT_METRICS,
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

_KINDS_SINCE = 1


def handle(
    node: Node, request: ListConfigResourcesRequest, context: RequestContext
) -> ListConfigResourcesResponse:
    asked = [CLIENT_METRICS] if context.api_version < _KINDS_SINCE else request.resource_types
    known = {
        ConfigResourceType.TOPIC: sorted(topic.name for topic in node.topics),
        ConfigResourceType.BROKER: [str(broker) for broker in sorted(node.cluster.state.brokers)],
        ConfigResourceType.GROUP: node.cluster.state.groups_with_configs,
        CLIENT_METRICS: [],
    }
    if any(kind not in known for kind in asked):
        return ListConfigResourcesResponse(
            error_code=ErrorCode.UNSUPPORTED_VERSION, config_resources=()
        )
    return ListConfigResourcesResponse(
        config_resources=[
            ConfigResource(resource_name=name, resource_type=kind)
            for kind, names in known.items()
            for name in names
            if kind in asked or not asked
        ]
    )
