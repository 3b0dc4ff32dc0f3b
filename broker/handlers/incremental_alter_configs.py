"""IncrementalAlterConfigs: single configs are set, deleted, appended to or subtracted from."""

from typing import Final

from tidemark.broker.handlers.change import Change
from tidemark.broker.metadata.config_changes import Alter, alter_each
from tidemark.broker.metadata.topic import Topic
from tidemark.broker.metadata.topic_defaults import changed
from tidemark.broker.network.requests import RequestContext
from tidemark.broker.node import Node
from tidemark.partitions.state_machines.config_changes import (
    AlterOp,
    ConfigChange,
    altered,
    altered_in,
)
from tidemark.partitions.state_machines.group_configs import GROUP_SETTINGS
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


async def handle(
    node: Node, request: IncrementalAlterConfigsRequest, _context: RequestContext
) -> IncrementalAlterConfigsResponse:
    outcomes = await alter_each(
        node, request.resources, _Changing(), validate_only=request.validate_only
    )
    return IncrementalAlterConfigsResponse(
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


class _Changing:
    """What is not named stays."""

    def of_topic(self, resource: AlterConfigsResource, topic: Topic) -> Alter:
        changes = [_change(config) for config in resource.configs]
        return lambda before: altered(before, changes, topic.defaults)

    def of_brokers(self, resource: AlterConfigsResource) -> Alter:
        changes = [_change(config) for config in resource.configs]
        return lambda before: changed(before, changes)

    def of_group(self, resource: AlterConfigsResource) -> Alter:
        changes = [_change(config) for config in resource.configs]
        return lambda before: altered_in(GROUP_SETTINGS, before, changes)


def _change(config: AlterableConfig) -> ConfigChange:
    try:
        op = AlterOp(config.config_operation)
    except ValueError:
        raise RequestError(
            ErrorCode.INVALID_REQUEST, f"there is no operation {config.config_operation}"
        ) from None
    return ConfigChange(name=config.name, op=op, value=config.value)


def refuse(
    request: IncrementalAlterConfigsRequest, error: RequestError
) -> IncrementalAlterConfigsResponse:
    return IncrementalAlterConfigsResponse(
        responses=[
            AlterConfigsResourceResponse(
                error_code=error.code,
                error_message=error.message,
                resource_type=each.resource_type,
                resource_name=each.resource_name,
            )
            for each in request.resources
        ]
    )


CHANGE: Final = Change(handle=handle, refuse=refuse, response=IncrementalAlterConfigsResponse)
