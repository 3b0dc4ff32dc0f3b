"""What coordinators know, compared with what the log says: whoever takes over has no more.

Three are compared: who has lived through it, who would take over by reading the log back, and, of
offsets, a model of the log that says in the fewest words which record counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from tidemark.broker.groups.group_partition import GroupPartition
from tidemark.broker.replicas.replica import Replica
from tidemark.broker.transactions.transaction_partition import TransactionPartition
from tidemark.partitions.state_machines.groups.consumer.group import ConsumerGroup
from tidemark.partitions.state_machines.groups.group import ClassicGroup
from tidemark.partitions.state_machines.groups.reading_back import ReadBack as GroupsReadBack
from tidemark.partitions.state_machines.groups.records import decode_record
from tidemark.partitions.state_machines.groups.requests import GroupState
from tidemark.partitions.state_machines.groups.settings import GroupSettings
from tidemark.partitions.state_machines.groups.shard import GroupShard
from tidemark.partitions.state_machines.instant import Instant
from tidemark.partitions.state_machines.transactions.reading_back import ReadBack
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.messages.consumer_offsets import OffsetCommitKey, OffsetCommitValue
from tidemark.protocol.records.control import read_marker
from tidemark.protocol.records.header import BatchHeader, iter_headers
from tidemark.protocol.records.records import decode_batch
from tidemark.protocol.types import NO_PRODUCER, ORIGIN, Offset, ProducerId, TopicPartition
from tidemark.testing.checkers.violation import require

AS_ITS_LOG: Final = "a coordinator knows what its log says"
_READ_BYTES: Final = 1 << 20
_AT: Final = Instant(ticks_ms=0, wall_ms=0)

Place = tuple[str, TopicPartition]
"""A group, and a partition that it reads."""


class OffsetsInLog:
    """Of each group and partition the last record counts whose transaction, if it is in one, is
    committed. Fed with a log in its order."""

    def __init__(self) -> None:
        # Those that may count yet, or do: all but the first are undecided, the first may be.
        self._said: dict[Place, list[tuple[ProducerId, OffsetCommitValue | None]]] = {}
        self.superseded = 0
        """How many transactions were decided after one that said more, and was committed."""

    def take_batch(self, data: bytes, header: BatchHeader, at: int) -> None:
        producer_id = ProducerId(header.producer_id) if header.is_transactional else NO_PRODUCER
        if header.is_control:
            marker = read_marker(data, header, at)
            if marker is not None:
                self._end(ProducerId(header.producer_id), is_commit=marker.is_commit)
            return
        for record in decode_batch(data, header, at):
            said = None if record.key is None else decode_record(record.key, record.value)
            if said is None or not isinstance(said.key, OffsetCommitKey):
                continue
            assert said.value is None or isinstance(said.value, OffsetCommitValue)
            place = said.key.group, TopicPartition(said.key.topic, said.key.partition)
            if producer_id == NO_PRODUCER:
                self._said[place] = [(NO_PRODUCER, said.value)]
            else:
                self._said.setdefault(place, []).append((producer_id, said.value))

    def _end(self, producer_id: ProducerId, *, is_commit: bool) -> None:
        for place, said in self._said.items():
            of_it = [at for at, (producer, _) in enumerate(said) if producer == producer_id]
            if of_it and is_commit:
                before = {of for of, _ in said[: of_it[-1]]} - {NO_PRODUCER, producer_id}
                self.superseded += len(before)
                self._said[place] = [(NO_PRODUCER, said[of_it[-1]][1]), *said[of_it[-1] + 1 :]]
            elif of_it:
                self._said[place] = [each for each in said if each[0] != producer_id]

    def counting(self) -> dict[Place, OffsetCommitValue]:
        """What counts."""
        first = ((place, *said[0]) for place, said in self._said.items() if said)
        return {
            place: value for place, of, value in first if of == NO_PRODUCER and value is not None
        }

    def unstable(self) -> set[Place]:
        """Of what another may come to count."""
        return {place for place, said in self._said.items() if said and said[-1][0] != NO_PRODUCER}


class _Reading(Protocol):
    def take_batch(self, data: bytes, header: BatchHeader, at: int) -> None: ...


@dataclass(slots=True)
class _Known:
    """What was committed of one partition."""

    readings: tuple[_Reading, ...]
    end_offset: Offset = ORIGIN.offset

    def read(self, replica: Replica) -> None:
        while self.end_offset < replica.high_watermark:
            found = replica.read(self.end_offset, bytes_max=_READ_BYTES, at_least_one=True).read()
            for at, header in iter_headers(found):
                # What begins below and ends above is a gap that compaction has left.
                if header.base_offset >= self.end_offset:
                    for reading in self.readings:
                        reading.take_batch(found, header, at)
                self.end_offset = max(self.end_offset, header.next_offset)


class MemoryJudge:
    """Of all coordinators of a run."""

    def __init__(self) -> None:
        self._known: dict[PartitionKey, _Known] = {}
        self.compared = 0
        """How often something was."""

    @property
    def superseded(self) -> int:
        """Offsets in transactions that lost to later records in others."""
        readings = (reading for known in self._known.values() for reading in known.readings)
        return sum(each.superseded for each in readings if isinstance(each, OffsetsInLog))

    def judge_groups(
        self, served: GroupPartition, settings: GroupSettings, *, from_the_start: bool = False
    ) -> None:
        """Where nothing is on its way. `from_the_start`: of what is left in the log by now."""
        shard, replica = served.shard, served.replica
        known = self._read(replica, (OffsetsInLog(), GroupsReadBack()), from_the_start)
        if known is None or shard._unstored:
            return
        said, read_back = known.readings
        assert isinstance(said, OffsetsInLog)
        assert isinstance(read_back, GroupsReadBack)
        restored = read_back.replay().finish(settings, _AT)
        for who, each in (("it", shard), ("its successor", restored)):
            _compare(replica, f"offsets, to {who}", _counting(each), said.counting())
            _compare(replica, f"undecided, to {who}", _unstable(each), said.unstable())
        for group_id in {*shard._groups, *restored._groups}:
            here, there = shard._groups.get(group_id), restored._groups.get(group_id)
            if isinstance(here, ConsumerGroup):
                if not _is_recorded(here):
                    continue
                _compare(replica, group_id, _of_consumers(here), _of_consumers(there))
            elif isinstance(here, ClassicGroup):
                if here.state is GroupState.STABLE:
                    _compare(replica, group_id, _of_classic(here), _of_classic(there))
            else:
                _compare(replica, group_id, None, _of_consumers(there))

    def judge_transactions(
        self, served: TransactionPartition, *, from_the_start: bool = False
    ) -> None:
        replica = served._log._replica
        known = self._read(replica, (ReadBack(),), from_the_start)
        if known is None or served.shard._unstored:
            return
        (read_back,) = known.readings
        assert isinstance(read_back, ReadBack)
        _compare(replica, "ids", dict(served.shard.list_ids()), read_back.values())

    def _read(
        self, replica: Replica, readings: tuple[_Reading, ...], from_the_start: bool
    ) -> _Known | None:
        """`None` where the log goes on, or another leader has committed more."""
        if from_the_start:
            known = _Known(readings, replica.log_start)
        else:
            known = self._known.setdefault(replica.key, _Known(readings))
        known.read(replica)
        if not known.end_offset == replica.high_watermark == replica.log_end:
            return None
        self.compared += 1
        return known


def _compare(replica: Replica, what: str, known: object, said: object) -> None:
    told = f"{what}: it knows {known}, and the log says {said}"
    require(known == said, AS_ITS_LOG, replica.name, told)


def _counting(shard: GroupShard) -> Mapping[Place, OffsetCommitValue]:
    offsets = shard._offsets
    return {
        (group, partition): value
        for group in offsets.groups()
        for partition, value in offsets.of(group).items()
    }


def _unstable(shard: GroupShard) -> set[Place]:
    offsets = shard._offsets
    return {
        (group, partition)
        for group in offsets.groups()
        for partition in offsets.partitions(group)
        if offsets.is_unstable(group, partition)
    }


def _is_recorded(group: ConsumerGroup) -> bool:
    recording = group.recording
    return not (recording.is_touched or recording.is_under_way or recording.unsure)


def _of_consumers(group: object) -> object:
    if not isinstance(group, ConsumerGroup) or not group.members:
        return None
    return group.epoch, group.target_epoch, group.members, group.target


def _of_classic(group: object) -> object:
    if not isinstance(group, ClassicGroup):
        return None
    members = {member.id: member.assignment for member in group.members.values()}
    return group.generation, group.protocol, group.leader, members
