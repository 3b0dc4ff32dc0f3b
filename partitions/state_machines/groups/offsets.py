"""The committed offsets, exactly as the log has them: only durable records change the table.

So the live table and one rebuilt by replay are the same by construction, and no reader sees a
commit that a crash could take back. Commits in transactions are kept aside until they are decided.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

from tidemark.partitions.state_machines.groups.effects import LogRecord
from tidemark.partitions.state_machines.groups.transactional import TransactionalOffsets
from tidemark.protocol.messages.consumer_offsets import OffsetCommitKey, OffsetCommitValue
from tidemark.protocol.types import ProducerId, TopicPartition

Offsets = Mapping[TopicPartition, OffsetCommitValue]

_NONE: Final[Offsets] = MappingProxyType({})


class _Counts:
    """How many records of each partition are handed out to be written."""

    def __init__(self) -> None:
        self._counts: dict[str, dict[TopicPartition, int]] = {}

    def of(self, group_id: str) -> Collection[TopicPartition]:
        return self._counts.get(group_id, ())

    def begin(self, group_id: str, partition: TopicPartition) -> None:
        counts = self._counts.setdefault(group_id, {})
        counts[partition] = counts.get(partition, 0) + 1

    def end(self, group_id: str, partition: TopicPartition) -> None:
        counts = self._counts[group_id]
        counts[partition] -= 1
        if not counts[partition]:
            del counts[partition]
        if not counts:
            del self._counts[group_id]


class OffsetTable:
    def __init__(self) -> None:
        self._durable: dict[str, dict[TopicPartition, OffsetCommitValue]] = {}
        self._undecided = TransactionalOffsets()
        # Whoever deletes or expires an offset must know of the commit that is on its way, and who
        # reads one of a transaction's that is.
        self._in_flight = _Counts()
        self._transactional_in_flight = _Counts()

    def of(self, group_id: str) -> Offsets:
        """The group's durable commits, without those of transactions that are not decided."""
        return self._durable.get(group_id, _NONE)

    def groups(self) -> Iterator[str]:
        """Every group that the log has commits of."""
        return iter(dict.fromkeys([*self._durable, *self._undecided.groups()]))

    def is_in_flight(self, group_id: str, partition: TopicPartition) -> bool:
        return partition in self._in_flight.of(group_id)

    def is_unstable(self, group_id: str, partition: TopicPartition) -> bool:
        """Whether a transaction may commit an offset there: in the log, or on its way to it."""
        return self._undecided.has(
            group_id, partition
        ) or partition in self._transactional_in_flight.of(group_id)

    def has_any(self, group_id: str) -> bool:
        """Whether the group has commits, of whichever kind."""
        return bool(
            group_id in self._durable
            or self._in_flight.of(group_id)
            or any(True for _ in self._undecided.partitions(group_id))
        )

    def partitions(self, group_id: str) -> list[TopicPartition]:
        """All partitions that the group has commits of, of whichever kind, in order."""
        on_their_way = {*self._in_flight.of(group_id), *self._undecided.partitions(group_id)}
        return sorted({*self._durable.get(group_id, ()), *on_their_way})

    def begin(self, records: Iterable[LogRecord], producer_id: ProducerId | None) -> None:
        """The records are on their way to the log."""
        for group_id, partition, _ in _commits(records):
            self._in_flight.begin(group_id, partition)
            if producer_id is not None:
                self._transactional_in_flight.begin(group_id, partition)

    def end(self, records: Iterable[LogRecord], producer_id: ProducerId | None) -> None:
        """The records' write is over, whatever came of it."""
        for group_id, partition, _ in _commits(records):
            self._in_flight.end(group_id, partition)
            if producer_id is not None:
                self._transactional_in_flight.end(group_id, partition)

    def apply(self, records: Iterable[LogRecord], producer_id: ProducerId | None = None) -> None:
        """The records are in the log for good: live, or as it is replayed."""
        for group_id, partition, value in _commits(records):
            if producer_id is not None:
                assert value is not None, "a transaction commits, and deletes nothing"
                self._undecided.add(producer_id, group_id, partition, value)
                continue
            self._undecided.supersede(group_id, partition)
            self._set(group_id, partition, value)

    def end_transaction(self, producer_id: ProducerId, *, is_commit: bool) -> list[str]:
        """Its marker is in the log for good. The groups that it had commits of."""
        ended = self._undecided.end(producer_id, is_commit=is_commit)
        for group_id, commits in ended.items():
            for partition, value in commits:
                self._set(group_id, partition, value)
        return list(ended)

    def _set(
        self, group_id: str, partition: TopicPartition, value: OffsetCommitValue | None
    ) -> None:
        if value is not None:
            self._durable.setdefault(group_id, {})[partition] = value
            return
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
