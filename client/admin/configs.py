"""Configs of topics and brokers."""

from collections.abc import Collection, Mapping

from tidemark.client.admin.calls import Calls
from tidemark.client.admin.config_calls import (
    APPEND,
    BROKER,
    SET,
    SUBTRACT,
    TOPIC,
    UNSET,
    change,
    describe,
    replace,
)
from tidemark.client.connection import Connection
from tidemark.client.descriptions import ConfigEntry
from tidemark.protocol.errors import RequestError
from tidemark.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from tidemark.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from tidemark.protocol.types import NodeId


class ConfigAdmin(Calls):
    """The calls about configs."""

    async def describe_configs(
        self, topic: str, *, documentation: bool = False
    ) -> list[ConfigEntry]:
        """All configs of a topic, those at their default too, by name."""

        async def ask(connection: Connection) -> list[ConfigEntry]:
            return await describe(connection, TOPIC, topic, documentation)

        return await self._on_any_broker(ask)

    async def describe_config(self, name: str, topics: Collection[str]) -> dict[str, str]:
        """One config of many topics, by topic; without those that do not exist, or have none."""

        async def ask(connection: Connection) -> dict[str, str]:
            resources = [
                DescribeConfigsResource(
                    resource_type=TOPIC, resource_name=topic, configuration_keys=(name,)
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
            return await describe(connection, BROKER, str(node_id), documentation)

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
            *((name, SET, value) for name, value in (set or {}).items()),
            *((name, UNSET, None) for name in unset),
            *((name, APPEND, value) for name, value in (append or {}).items()),
            *((name, SUBTRACT, value) for name, value in (subtract or {}).items()),
        ]

        async def ask(connection: Connection) -> None:
            try:
                connection.version(IncrementalAlterConfigsRequest)
            except RequestError:
                await replace(connection, topic, changes, validate_only)
            else:
                await change(connection, topic, changes, validate_only)

        await self._on_controller(ask)
