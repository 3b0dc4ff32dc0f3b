"""AlterConfigs: all configs of a topic, of brokers or of a group are replaced by those given.

What is not given goes back to its default. `incremental_alter_configs` changes single ones.
"""

from collections.abc import Mapping
from typing import Final

from tidemark.broker.handlers.change import Change
from tidemark.broker.metadata.config_changes import Alter, alter_each, answer
from tidemark.broker.metadata.running_configs import RUNNING_SETTINGS, replaced
from tidemark.broker.metadata.topic import Topic
from tidemark.broker.network.requests import RequestContext
from tidemark.broker.node import Node
from tidemark.partitions.state_machines.config_table import Setting, check_new
from tidemark.partitions.state_machines.group_configs import GROUP_SETTINGS
from tidemark.partitions.state_machines.topic_configs import TOPIC_SETTINGS
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResponse,
)


async def handle(
    node: Node, request: AlterConfigsRequest, _context: RequestContext
) -> AlterConfigsResponse:
    responses = await alter_each(
        node, request.resources, _Replacing(), validate_only=request.validate_only
    )
    return AlterConfigsResponse(responses=responses)


class _Replacing:
    """All that was set before goes."""

    def of_topic(self, resource: AlterConfigsResource, topic: Topic) -> Alter:
        del topic
        return _replacement(_configs(resource), TOPIC_SETTINGS)

    def of_brokers(self, resource: AlterConfigsResource) -> Alter:
        return _replacement(replaced(_configs(resource)), RUNNING_SETTINGS)

    def of_group(self, resource: AlterConfigsResource) -> Alter:
        return _replacement(_configs(resource), GROUP_SETTINGS)


def _replacement(configs: Mapping[str, str], table: Mapping[str, Setting]) -> Alter:
    def alter(before: Mapping[str, str]) -> Mapping[str, str]:
        # What is described can be written back, whatever an earlier version has taken.
        check_new(table, dict(configs.items() - before.items()))
        return configs

    return alter


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


def refuse(request: AlterConfigsRequest, error: RequestError) -> AlterConfigsResponse:
    return AlterConfigsResponse(responses=[answer(each, error) for each in request.resources])


CHANGE: Final = Change(handle=handle, refuse=refuse, response=AlterConfigsResponse, may_repeat=True)
