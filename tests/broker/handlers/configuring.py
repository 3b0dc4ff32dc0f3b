"""How tests describe and alter configs, and what is set then."""

from tests.broker.handlers.asking import ask
from tidemark.broker.handlers import alter_configs, describe_configs, incremental_alter_configs
from tidemark.broker.node import Node
from tidemark.protocol.messages import alter_configs as replacing
from tidemark.protocol.messages import incremental_alter_configs as changing
from tidemark.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResult,
)

TOPIC, BROKER = 2, 4
OVERRIDE, ONE_BROKER, ALL_BROKERS, FILE, DEFAULT = 1, 2, 3, 4, 5


async def describe(
    node: Node,
    resource_type: int,
    name: str,
    *,
    version: int = 4,
    keys: tuple[str, ...] | None = None,
    explained: bool = True,
) -> DescribeConfigsResult:
    resource = DescribeConfigsResource(
        resource_type=resource_type, resource_name=name, configuration_keys=keys
    )
    request = DescribeConfigsRequest(
        resources=(resource,),
        include_synonyms=explained,
        include_documentation=explained and version >= 3,
    )
    response = await ask(describe_configs.handle, node, request, version)
    return response.results[0]


def by_name(result: DescribeConfigsResult) -> dict[str, DescribeConfigsResourceResult]:
    return {each.name: each for each in result.configs}


async def replace(
    node: Node,
    name: str,
    configs: dict[str, str | None],
    *,
    version: int = 2,
    resource_type: int = TOPIC,
    validate_only: bool = False,
) -> int:
    resource = replacing.AlterConfigsResource(
        resource_type=resource_type,
        resource_name=name,
        configs=[
            replacing.AlterableConfig(name=key, value=value) for key, value in configs.items()
        ],
    )
    request = replacing.AlterConfigsRequest(resources=(resource,), validate_only=validate_only)
    return (await ask(alter_configs.handle, node, request, version)).responses[0].error_code


async def change(
    node: Node,
    name: str,
    *changes: tuple[str, int, str | None],
    version: int = 1,
    resource_type: int = TOPIC,
    validate_only: bool = False,
) -> int:
    resource = changing.AlterConfigsResource(
        resource_type=resource_type,
        resource_name=name,
        configs=[
            changing.AlterableConfig(name=key, config_operation=op, value=value)
            for key, op, value in changes
        ],
    )
    request = changing.IncrementalAlterConfigsRequest(
        resources=(resource,), validate_only=validate_only
    )
    response = await ask(incremental_alter_configs.handle, node, request, version)
    return response.responses[0].error_code


async def overrides(node: Node, name: str) -> dict[str, str]:
    topic = node.topics.get(name)
    assert topic is not None
    return dict(topic.overrides)
