"""The committed offsets, exactly as the log has them: only durable records change the table.

So the live table and one rebuilt by replay are the same by construction, and no reader sees a
commit that a crash could take back.
"""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

from tidemark.partitions.state_machines.groups.effects import LogRecord
from tidemark.protocol.messages.consumer_offsets import OffsetCommitKey, OffsetCommitValue
from tidemark.protocol.types import TopicPartition

Offsets = Mapping[TopicPartition, OffsetCommitValue]

_NONE: Final[Offsets] = MappingProxyType({})


class OffsetTable:
    def __init__(self) -> None:
        self._durable: dict[str, dict[TopicPartition, OffsetCommitValue]] = {}
        # How many records of a partition are handed out to be written: whoever deletes or expires
        # an offset must know of the commit that is on its way.
        self._in_flight: dict[str, dict[TopicPartition, int]] = {}

    def of(self, group_id: str) -> Offsets:
        """The group's durable commits."""
        return self._durable.get(group_id, _NONE)

    def groups(self) -> Iterator[str]:
        """Every group that has durable commits."""
        return iter(self._durable)

    def is_in_flight(self, group_id: str, partition: TopicPartition) -> bool:
        return partition in self._in_flight.get(group_id, ())

    def has_any(self, group_id: str) -> bool:
        """Whether the group has commits, durable or on their way."""
        return group_id in self._durable or group_id in self._in_flight

    def partitions(self, group_id: str) -> list[TopicPartition]:
        """All partitions that the group has commits of, durable or on their way, in order."""
        return sorted({*self._durable.get(group_id, ()), *self._in_flight.get(group_id, ())})

    def begin(self, records: Iterable[LogRecord]) -> None:
        """The records are on their way to the log."""
        for group_id, partition, _ in _commits(records):
            counts = self._in_flight.setdefault(group_id, {})
            counts[partition] = counts.get(partition, 0) + 1

    def end(self, records: Iterable[LogRecord]) -> None:
        """The records' write is over, whatever came of it."""
        for group_id, partition, _ in _commits(records):
            counts = self._in_flight[group_id]
            counts[partition] -= 1
            if not counts[partition]:
                del counts[partition]
            if not counts:
                del self._in_flight[group_id]

    def apply(self, records: Iterable[LogRecord]) -> None:
        """The records are in the log for good: live, or as it is replayed."""
        for group_id, partition, value in _commits(records):
            if value is not None:
                self._durable.setdefault(group_id, {})[partition] = value
                continue
            offsets = self._durable.get(group_id, {})
            offsets.pop(partition, None)
            if not offsets:
                self._durable.pop(group_id, None)


def _commits(
    records: Iterable[LogRecord],
) -> Iterator[tuple[str, TopicPartition, OffsetCommitValue | None]]:
    for key, value in records:
        if isinstance(key, OffsetCommitKey):
            assert value is None or isinstance(value, OffsetCommitValue)
            yield key.group, TopicPartition(key.topic, key.partition), value
