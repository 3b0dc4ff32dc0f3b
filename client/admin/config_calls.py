"""How configs are asked for and changed, whatever has them."""

from typing import Final

from tidemark.client.codes import check
from tidemark.client.connection import Connection
from tidemark.client.descriptions import ConfigEntry, ConfigSource
from tidemark.protocol.messages import alter_configs, incremental_alter_configs
from tidemark.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)

TOPIC: Final = 2
BROKER: Final = 4
SET, UNSET, APPEND, SUBTRACT = range(4)
_SOURCES: Final = {int(source): source for source in ConfigSource}

Changes = list[tuple[str, int, str | None]]
"""Name, operation, value."""


async def describe(
    connection: Connection, resource_type: int, name: str, documentation: bool
) -> list[ConfigEntry]:
    has_documentation = connection.version(DescribeConfigsRequest) >= 3
    answer = await connection.request(
        DescribeConfigsRequest(
            resources=[
                DescribeConfigsResource(
                    resource_type=resource_type, resource_name=name, configuration_keys=None
                )
            ],
            include_documentation=documentation and has_documentation,
        ),
        DescribeConfigsResponse,
    )
    (result,) = answer.results
    what = f"topic {name}" if resource_type == TOPIC else f"broker {name}"
    check(result.error_code, what, result.error_message)
    return sorted(map(_entry, result.configs), key=lambda entry: entry.name)


def _entry(config: DescribeConfigsResourceResult) -> ConfigEntry:
    return ConfigEntry(
        name=config.name,
        value=config.value,
        source=_SOURCES.get(config.config_source, ConfigSource.UNKNOWN),
        is_read_only=config.read_only,
        is_sensitive=config.is_sensitive,
        documentation=config.documentation or None,
    )


async def change(connection: Connection, topic: str, changes: Changes, validate_only: bool) -> None:
    resource = incremental_alter_configs.AlterConfigsResource(
        resource_type=TOPIC,
        resource_name=topic,
        configs=[
            incremental_alter_configs.AlterableConfig(
                name=name, config_operation=operation, value=value
            )
            for name, operation, value in changes
        ],
    )
    answer = await connection.request(
        incremental_alter_configs.IncrementalAlterConfigsRequest(
            resources=[resource], validate_only=validate_only
        ),
        incremental_alter_configs.IncrementalAlterConfigsResponse,
    )
    (altered,) = answer.responses
    check(altered.error_code, f"topic {topic}", altered.error_message)


async def replace(
    connection: Connection, topic: str, changes: Changes, validate_only: bool
) -> None:
    entries = await describe(connection, TOPIC, topic, False)
    resource = alter_configs.AlterConfigsResource(
        resource_type=TOPIC,
        resource_name=topic,
        configs=[
            alter_configs.AlterableConfig(name=name, value=value)
            for name, value in apply_changes(entries, changes).items()
        ],
    )
    answer = await connection.request(
        alter_configs.AlterConfigsRequest(resources=[resource], validate_only=validate_only),
        alter_configs.AlterConfigsResponse,
    )
    (altered,) = answer.responses
    check(altered.error_code, f"topic {topic}", altered.error_message)


def apply_changes(entries: list[ConfigEntry], changes: Changes) -> dict[str, str | None]:
    """What is set on the topic after the changes, from all its configs before."""
    values = {entry.name: entry.value for entry in entries}
    overrides = {entry.name: entry.value for entry in entries if entry.source is ConfigSource.TOPIC}
    for name, operation, value in changes:
        old = [item for item in (overrides.get(name) or values.get(name) or "").split(",") if item]
        items = (value or "").split(",")
        if operation == UNSET:
            overrides.pop(name, None)
        elif operation == SET:
            overrides[name] = value
        elif operation == APPEND:
            overrides[name] = ",".join([*old, *(item for item in items if item not in old)])
        else:
            assert operation == SUBTRACT
            overrides[name] = ",".join(item for item in old if item not in items)
    return overrides
