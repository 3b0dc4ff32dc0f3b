"""Configs of topics, brokers and groups."""

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import TypeVar

from tidemark.client.admin.calls import Calls
from tidemark.client.admin.config_calls import (
    Resource,
    change,
    changes_of,
    describe,
    replace,
)
from tidemark.client.connection import Connection
from tidemark.client.descriptions import ConfigEntry
from tidemark.client.limits import require_configs, require_topic
from tidemark.protocol.configs import AlterOp, ConfigResourceType
from tidemark.protocol.errors import RequestError
from tidemark.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from tidemark.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from tidemark.protocol.types import NodeId

T = TypeVar("T")


class ConfigAdmin(Calls):
    """The calls about configs."""

    async def describe_configs(
        self, topic: str, *, documentation: bool = False
    ) -> list[ConfigEntry]:
        """All configs of a topic, those at their default too, by name."""

        async def ask(connection: Connection) -> list[ConfigEntry]:
            resource = Resource(ConfigResourceType.TOPIC, topic)
            return await describe(connection, resource, documentation=documentation)

        return await self._on_any_broker(ask)

    async def describe_config(self, name: str, topics: Collection[str]) -> dict[str, str]:
        """One config of many topics, by topic; without those that do not exist, or have none."""

        async def ask(connection: Connection) -> dict[str, str]:
            resources = [
                DescribeConfigsResource(
                    resource_type=ConfigResourceType.TOPIC,
                    resource_name=topic,
                    configuration_keys=(name,),
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
        require_topic(topic)
        for given in (set, append, subtract):
            require_configs(given or {})
        changes = [
            *changes_of(set, unset),
            *((name, AlterOp.APPEND, value) for name, value in (append or {}).items()),
            *((name, AlterOp.SUBTRACT, value) for name, value in (subtract or {}).items()),
        ]

        resource = Resource(ConfigResourceType.TOPIC, topic)

        async def ask(connection: Connection) -> None:
            try:
                connection.version(IncrementalAlterConfigsRequest)
            except RequestError:
                await replace(connection, resource, changes, validate_only=validate_only)
            else:
                await change(connection, resource, changes, validate_only=validate_only)

        await self._on_controller(ask)

    async def describe_broker_configs(
        self, node_id: int | None = None, *, documentation: bool = False
    ) -> list[ConfigEntry]:
        """All configs of a broker, as that broker answers, by name; without a number, those that
        were set for all brokers while they ran."""

        async def ask(connection: Connection) -> list[ConfigEntry]:
            return await describe(connection, _broker(node_id), documentation=documentation)

        return await self._at_broker(node_id, ask)

    async def alter_broker_configs(
        self,
        node_id: int | None = None,
        set: Mapping[str, str] | None = None,
        *,
        unset: Collection[str] = (),
        validate_only: bool = False,
    ) -> None:
        """Change what a broker, or without a number all of them, have for topics that do not say it
        themselves (`log.retention.ms`), and its throttles; all else is in a broker's file.

        It holds at once and outlives restarts. `unset` takes back what was set in this way.
        """
        changes = changes_of(set, unset)

        async def ask(connection: Connection) -> None:
            await change(connection, _broker(node_id), changes, validate_only=validate_only)

        await self._at_broker(node_id, ask)

    async def _at_broker(self, node_id: int | None, ask: Callable[[Connection], Awaitable[T]]) -> T:
        """Kafka's brokers want to be asked about themselves."""
        if node_id is None:
            return await self._on_controller(ask)

        async def attempt() -> T:
            return await ask(await self._network.connection_to(NodeId(node_id)))

        return await self._network.retrying(attempt)

    async def describe_group_configs(
        self, group: str, *, documentation: bool = False
    ) -> list[ConfigEntry]:
        """All configs of a group of the consumer protocol, by name; it need not be there."""
        resource = Resource(ConfigResourceType.GROUP, group)

        async def ask(connection: Connection) -> list[ConfigEntry]:
            return await describe(connection, resource, documentation=documentation)

        return await self._on_any_broker(ask)

    async def alter_group_configs(
        self,
        group: str,
        set: Mapping[str, str] | None = None,
        *,
        unset: Collection[str] = (),
        validate_only: bool = False,
    ) -> None:
        """Change some configs of a group of the consumer protocol (`consumer.session.timeout.ms`).

        They hold from each member's next heartbeat on.
        """
        resource, changes = Resource(ConfigResourceType.GROUP, group), changes_of(set, unset)

        async def ask(connection: Connection) -> None:
            await change(connection, resource, changes, validate_only=validate_only)

        await self._on_controller(ask)


def _broker(node_id: int | None) -> Resource:
    return Resource(ConfigResourceType.BROKER, "" if node_id is None else str(node_id))
