"""Places in logs, looked up: what offset `--before`, `--to` and the like mean in each partition."""

from collections.abc import Awaitable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from tidemark.client import (
    Admin,
    AtOffset,
    AtTime,
    BeforeEnd,
    Beginning,
    End,
    ErrorCode,
    ListedOffset,
    RequestError,
    Start,
    TopicDescription,
    TopicPartition,
)
from tidemark.protocol.types import Offset

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Extent:
    """What a partition holds: offsets from `start` to `end` (exclusive)."""

    start: Offset
    end: Offset

    def clamp(self, offset: int) -> Offset:
        """The nearest place in the log, its end included."""
        return Offset(min(max(offset, self.start), self.end))


def partitions_of(topic: TopicDescription) -> list[TopicPartition]:
    return [TopicPartition(topic.name, p.partition) for p in topic.partitions]


async def extents(
    admin: Admin, partitions: Collection[TopicPartition]
) -> dict[TopicPartition, Extent]:
    """Where these partitions start and end now."""
    if not partitions:
        return {}
    starts = await admin.beginning_offsets(partitions)
    ends = await admin.end_offsets(partitions)
    return {partition: Extent(starts[partition], ends[partition]) for partition in partitions}


async def resolve(
    admin: Admin, place: Start, within: Mapping[TopicPartition, Extent]
) -> dict[TopicPartition, Offset]:
    """The offset that `place` is in each of these partitions, never outside of the log.

    A time after the last record's is the end.
    """
    times: Mapping[TopicPartition, ListedOffset] = {}
    if isinstance(place, AtTime) and within:
        times = await admin.list_offsets(dict.fromkeys(within, place))

    def at(partition: TopicPartition, extent: Extent) -> Offset:
        match place:
            case Beginning():
                return extent.start
            case End():
                return extent.end
            case AtOffset(offset):
                return extent.clamp(offset)
            case BeforeEnd(records):
                return extent.clamp(extent.end - records)
            case AtTime():
                found = times[partition].offset
                return extent.end if found < 0 else extent.clamp(found)

    return {partition: at(partition, extent) for partition, extent in within.items()}


async def extents_of_existing(
    admin: Admin, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, Extent]:
    """The extents of those that there are: a group may have commits for a deleted topic."""
    topics = await admin.list_topics(internal=True)
    there = {
        TopicPartition(topic.name, p.partition)
        for topic in topics
        for p in topic.partitions
        if p.leader is not None
    }
    return await extents(admin, sorted(there.intersection(partitions)))


async def unless_unsupported(answer: Awaitable[T], instead: T) -> T:
    """What the cluster answers, or `instead` if its brokers do not have that question."""
    try:
        return await answer
    except RequestError as error:
        if error.code is not ErrorCode.UNSUPPORTED_VERSION:
            raise
        return instead
