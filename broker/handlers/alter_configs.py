"""AlterConfigs: all of a topic's configs are replaced by those given.

What is not given goes back to its default. `incremental_alter_configs` changes single ones.
"""

from tidemark.broker.metadata.config_changes import alter_each
from tidemark.broker.metadata.topic import Topic
from tidemark.broker.network.requests import RequestContext
from tidemark.broker.node import Node
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)


async def handle(
    node: Node, request: AlterConfigsRequest, _context: RequestContext
) -> AlterConfigsResponse:
    async def replace(topic: Topic, resource: AlterConfigsResource) -> None:
        await node.topics.set_configs(
            topic, _configs(resource), validate_only=request.validate_only
        )

    outcomes = await alter_each(node, request.resources, replace)
    return AlterConfigsResponse(
        responses=[
            AlterConfigsResourceResponse(
                error_code=outcome.code,
                error_message=outcome.message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
            for resource, outcome in outcomes
        ]
    )


def _configs(resource: AlterConfigsResource) -> dict[str, str]:
    configs = {}
    for config in resource.configs:
        if config.value is None:
            raise RequestError(
                ErrorCode.INVALID_REQUEST,
                f"{config.name} has no value: leave it out for the default",
            )
        configs[config.name] = config.value
    return configs
