"""Configs of topics and brokers."""

from collections.abc import Collection, Mapping

from tidemark.client.descriptions import ConfigEntry
from tidemark.protocol.types import NodeId


class ConfigAdmin:
    """The calls about configs."""

    async def describe_configs(
        self, topic: str, *, documentation: bool = False
    ) -> list[ConfigEntry]:
        """All configs of a topic, those at their default too, by name."""
        raise NotImplementedError

    async def describe_broker_configs(
        self, node_id: NodeId, *, documentation: bool = False
    ) -> list[ConfigEntry]:
        """All configs of a broker, as that broker answers, by name."""
        raise NotImplementedError

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
        """
        raise NotImplementedError
