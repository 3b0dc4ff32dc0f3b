"""Configs of topics and brokers."""

from collections.abc import Collection, Mapping
from typing import Final

from tidemark.client.admin.calls import Calls
from tidemark.client.codes import check
from tidemark.client.connection import Connection
from tidemark.client.descriptions import ConfigEntry, ConfigSource
from tidemark.protocol.errors import RequestError
from tidemark.protocol.messages import alter_configs, incremental_alter_configs
from tidemark.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)
from tidemark.protocol.types import NodeId

_TOPIC: Final = 2
_BROKER: Final = 4
_SET, _UNSET, _APPEND, _SUBTRACT = range(4)
_SOURCES: Final = {int(source): source for source in ConfigSource}


class ConfigAdmin(Calls):
    """The calls about configs."""

    async def describe_configs(
        self, topic: str, *, documentation: bool = False
    ) -> list[ConfigEntry]:
        """All configs of a topic, those at their default too, by name."""

        async def ask(connection: Connection) -> list[ConfigEntry]:
            return await _describe(connection, _TOPIC, topic, documentation)

        return await self._on_any_broker(ask)

    async def describe_config(self, name: str, topics: Collection[str]) -> dict[str, str]:
        """One config of many topics, by topic; without those that do not exist, or have none."""

        async def ask(connection: Connection) -> dict[str, str]:
            resources = [
                DescribeConfigsResource(
                    resource_type=_TOPIC, resource_name=topic, configuration_keys=(name,)
                )
                for topic in topics
            ]
            request = DescribeConfigsRequest(resources=resources)
            answer = await connection.request(request, DescribeConfigsResponse)
            return {
                result.resource_name: config.value
                for result in answer.results
                for config in result.configs
                if config.name == name and config.value is not None
            }

        return await self._on_any_broker(ask) if topics else {}

    async def describe_broker_configs(
        self, node_id: NodeId, *, documentation: bool = False
    ) -> list[ConfigEntry]:
        """All configs of a broker, as that broker answers, by name."""

        async def attempt() -> list[ConfigEntry]:
            connection = await self._network.connection_to(node_id)
            return await _describe(connection, _BROKER, str(node_id), documentation)

        return await self._network.retrying(attempt)

    async def alter_configs(
        self,
        topic: str,
        set: Mapping[str, str] | None = None,
        *,
        unset: Collection[str] = (),
        append: Mapping[str, str] | None = None,
        subtract: Mapping[str, str] | None = None,
        validate_only: bool = False,
    ) -> None:
        """Change some of a topic's configs and leave the others as they are.

        `unset` goes back to the default; `append` and `subtract` are for configs that are lists.
        Brokers before Kafka 2.3 can only replace all configs of a topic at once: there, what is set
        is read first, and what someone else sets in between is lost.
        """
        changes = [
            *((name, _SET, value) for name, value in (set or {}).items()),
            *((name, _UNSET, None) for name in unset),
            *((name, _APPEND, value) for name, value in (append or {}).items()),
            *((name, _SUBTRACT, value) for name, value in (subtract or {}).items()),
        ]

        async def ask(connection: Connection) -> None:
            try:
                connection.version(incremental_alter_configs.IncrementalAlterConfigsRequest)
            except RequestError:
                await _replace(connection, topic, changes, validate_only)
            else:
                await _change(connection, topic, changes, validate_only)

        await self._on_controller(ask)


_Changes = list[tuple[str, int, str | None]]
"""Name, operation, value."""


async def _describe(
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
    what = f"topic {name}" if resource_type == _TOPIC else f"broker {name}"
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


async def _change(
    connection: Connection, topic: str, changes: _Changes, validate_only: bool
) -> None:
    resource = incremental_alter_configs.AlterConfigsResource(
        resource_type=_TOPIC,
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


async def _replace(
    connection: Connection, topic: str, changes: _Changes, validate_only: bool
) -> None:
    entries = await _describe(connection, _TOPIC, topic, False)
    resource = alter_configs.AlterConfigsResource(
        resource_type=_TOPIC,
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


def apply_changes(entries: list[ConfigEntry], changes: _Changes) -> dict[str, str | None]:
    """What is set on the topic after the changes, from all its configs before."""
    values = {entry.name: entry.value for entry in entries}
    overrides = {entry.name: entry.value for entry in entries if entry.source is ConfigSource.TOPIC}
    for name, operation, value in changes:
        old = [item for item in (overrides.get(name) or values.get(name) or "").split(",") if item]
        items = (value or "").split(",")
        if operation == _UNSET:
            overrides.pop(name, None)
        elif operation == _SET:
            overrides[name] = value
        elif operation == _APPEND:
            overrides[name] = ",".join([*old, *(item for item in items if item not in old)])
        else:
            assert operation == _SUBTRACT
            overrides[name] = ",".join(item for item in old if item not in items)
    return overrides
