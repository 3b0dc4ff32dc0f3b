"""Offsets of partitions."""

from collections.abc import Iterable, Mapping

from tidemark.client.descriptions import ListedOffset
from tidemark.client.offsets import Isolation, OffsetSpec
from tidemark.protocol.types import Offset, TopicPartition


class OffsetAdmin:
    """The calls about offsets."""

    async def list_offsets(
        self,
        specs: Mapping[TopicPartition, OffsetSpec],
        *,
        isolation: Isolation = Isolation.READ_UNCOMMITTED,
    ) -> dict[TopicPartition, ListedOffset]:
        """Ask each partition's leader for a place in its log; the first error is raised."""
        raise NotImplementedError

    async def beginning_offsets(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, Offset]:
        """The log starts."""
        raise NotImplementedError

    async def end_offsets(
        self,
        partitions: Iterable[TopicPartition],
        *,
        isolation: Isolation = Isolation.READ_UNCOMMITTED,
    ) -> dict[TopicPartition, Offset]:
        """The ends (exclusive): high watermarks, or last stable offsets if committed."""
        raise NotImplementedError
