"""How configs are asked for and changed, whatever has them."""

from collections.abc import Collection, Mapping
from typing import Final

from tidemark.client.codes import check, only
from tidemark.client.connection import Connection
from tidemark.client.descriptions import ConfigEntry
from tidemark.protocol.configs import AlterOp, ConfigResourceType, ConfigSource
from tidemark.protocol.messages import alter_configs, incremental_alter_configs
from tidemark.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)
from tidemark.protocol.values import dataclass

_SOURCES: Final = {int(source): source for source in ConfigSource}

Changes = list[tuple[str, AlterOp, str | None]]
"""Name, operation, value."""


@dataclass(frozen=True, slots=True)
class Resource:
    """One of these; a broker without a name is all of them."""

    type: ConfigResourceType
    name: str

    def __str__(self) -> str:
        if self.type is ConfigResourceType.BROKER and not self.name:
            return "all brokers"
        return f"{self.type.name.lower()} {self.name}"


def changes_of(set: Mapping[str, str] | None, unset: Collection[str]) -> Changes:
    return [
        *((name, AlterOp.SET, value) for name, value in (set or {}).items()),
        *((name, AlterOp.DELETE, None) for name in unset),
    ]


async def describe(
    connection: Connection, resource: Resource, *, documentation: bool = False
) -> list[ConfigEntry]:
    """All configs of it, by name."""
    has_documentation = connection.version(DescribeConfigsRequest) >= 3
    answer = await connection.request(
        DescribeConfigsRequest(
            resources=[
                DescribeConfigsResource(
                    resource_type=resource.type,
                    resource_name=resource.name,
                    configuration_keys=None,
                )
            ],
            include_documentation=documentation and has_documentation,
        ),
        DescribeConfigsResponse,
    )
    result = only(answer.results, resource)
    check(result.error_code, resource, result.error_message)
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


async def change(
    connection: Connection, resource: Resource, changes: Changes, *, validate_only: bool
) -> None:
    """What is not named stays."""
    changed = incremental_alter_configs.AlterConfigsResource(
        resource_type=resource.type,
        resource_name=resource.name,
        configs=[
            incremental_alter_configs.AlterableConfig(
                name=name, config_operation=operation, value=value
            )
            for name, operation, value in changes
        ],
    )
    answer = await connection.request(
        incremental_alter_configs.IncrementalAlterConfigsRequest(
            resources=[changed], validate_only=validate_only
        ),
        incremental_alter_configs.IncrementalAlterConfigsResponse,
    )
    altered = only(answer.responses, resource)
    check(altered.error_code, resource, altered.error_message)


async def replace(
    connection: Connection, resource: Resource, changes: Changes, *, validate_only: bool
) -> None:
    """The same at brokers that can only replace all configs of a topic at once."""
    entries = await describe(connection, resource)
    replaced = alter_configs.AlterConfigsResource(
        resource_type=resource.type,
        resource_name=resource.name,
        configs=[
            alter_configs.AlterableConfig(name=name, value=value)
            for name, value in apply_changes(entries, changes).items()
        ],
    )
    answer = await connection.request(
        alter_configs.AlterConfigsRequest(resources=[replaced], validate_only=validate_only),
        alter_configs.AlterConfigsResponse,
    )
    altered = only(answer.responses, resource)
    check(altered.error_code, resource, altered.error_message)


def apply_changes(entries: list[ConfigEntry], changes: Changes) -> dict[str, str | None]:
    """What is set on the topic after the changes, from all its configs before."""
    values = {entry.name: entry.value for entry in entries}
    overrides = {entry.name: entry.value for entry in entries if entry.source is ConfigSource.TOPIC}
    for name, operation, value in changes:
        old = [item for item in (overrides.get(name) or values.get(name) or "").split(",") if item]
        items = (value or "").split(",")
        if operation is AlterOp.DELETE:
            overrides.pop(name, None)
        elif operation is AlterOp.SET:
            overrides[name] = value
        elif operation is AlterOp.APPEND:
            overrides[name] = ",".join([*old, *(item for item in items if item not in old)])
        else:
            assert operation is AlterOp.SUBTRACT
            overrides[name] = ",".join(item for item in old if item not in items)
    return overrides
