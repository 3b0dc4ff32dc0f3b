"""Topics: create, delete, list, describe, grow, trim."""

from collections.abc import Mapping, Sequence

from tidemark.client.descriptions import CreatedTopic, TopicDescription
from tidemark.protocol.types import Offset, TopicPartition


class TopicAdmin:
    """The calls about topics."""

    async def create_topic(
        self,
        name: str,
        *,
        partitions: int = -1,
        replication_factor: int = -1,
        configs: Mapping[str, str | None] | None = None,
        validate_only: bool = False,
    ) -> CreatedTopic:
        """Create a topic; -1 asks for the broker's default. Waits until metadata shows it."""
        raise NotImplementedError

    async def delete_topic(self, name: str) -> None:
        """Delete a topic with its records."""
        raise NotImplementedError

    async def list_topics(self, *, internal: bool = False) -> list[TopicDescription]:
        """All topics by name; those the cluster keeps for itself only with `internal`."""
        raise NotImplementedError

    async def describe_topic(self, name: str) -> TopicDescription:
        """One topic; UNKNOWN_TOPIC_OR_PARTITION if there is none of that name."""
        raise NotImplementedError

    async def describe_topics(self, names: Sequence[str]) -> list[TopicDescription]:
        """These topics, in the order asked for."""
        raise NotImplementedError

    async def create_partitions(
        self, name: str, total: int, *, validate_only: bool = False
    ) -> None:
        """Grow a topic to `total` partitions. Keyed records go elsewhere from then on."""
        raise NotImplementedError

    async def delete_records(
        self, ends: Mapping[TopicPartition, Offset | int]
    ) -> dict[TopicPartition, Offset]:
        """Delete what lies below these offsets (-1: below the high watermark).

        Gives back the log starts there are then.
        """
        raise NotImplementedError
