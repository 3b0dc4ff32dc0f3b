"""Offsets of partitions."""

from collections.abc import Iterable, Mapping

from tidemark.client.admin.calls import Calls
from tidemark.client.descriptions import ListedOffset
from tidemark.client.limits import require_by_partition
from tidemark.client.lookups import list_offsets, resolve_starts
from tidemark.client.offsets import Beginning, End, Isolation, OffsetSpec, Start, as_start
from tidemark.protocol.types import Offset, TopicPartition


class OffsetAdmin(Calls):
    """The calls about offsets."""

    async def list_offsets(
        self,
        specs: Mapping[TopicPartition, OffsetSpec],
        *,
        isolation: Isolation = Isolation.READ_UNCOMMITTED,
    ) -> dict[TopicPartition, ListedOffset]:
        """Ask each partition's leader for a place in its log; the first error is raised."""
        return await list_offsets(self._network, specs, isolation)

    async def resolve_offsets(
        self,
        starts: Mapping[TopicPartition, Start],
        *,
        isolation: Isolation = Isolation.READ_UNCOMMITTED,
    ) -> dict[TopicPartition, Offset]:
        """The offsets that these places are now; see `tidemark.client.offsets`."""
        require_by_partition("places", starts, '"end"')
        places = {each: as_start(start) for each, start in starts.items()}
        return await resolve_starts(self._network, places, isolation)

    async def beginning_offsets(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, Offset]:
        """The log starts."""
        found = await self.list_offsets(dict.fromkeys(partitions, Beginning()))
        return {topic_partition: listed.offset for topic_partition, listed in found.items()}

    async def end_offsets(
        self,
        partitions: Iterable[TopicPartition],
        *,
        isolation: Isolation = Isolation.READ_UNCOMMITTED,
    ) -> dict[TopicPartition, Offset]:
        """The ends (exclusive): high watermarks, or last stable offsets if committed."""
        found = await self.list_offsets(dict.fromkeys(partitions, End()), isolation=isolation)
        return {topic_partition: listed.offset for topic_partition, listed in found.items()}
