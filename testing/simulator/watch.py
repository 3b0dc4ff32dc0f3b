"""The judges of all groups, told what the brokers do.

Each group has judges of its own (`group_judge`); here they hear of what is on the disks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from tidemark.partitions.replication.group_replica import GroupReplica
from tidemark.partitions.replication.peer_messages import PeerMessage, group_messages
from tidemark.partitions.storage.journal import records as journal_records
from tidemark.partitions.storage.journal.records import JournalRecord, RecordKind
from tidemark.partitions.storage.log import Log
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.records.header import BatchHeader, iter_headers
from tidemark.protocol.types import ORIGIN, NodeId, Offset, Position
from tidemark.testing.checkers import producers, serving
from tidemark.testing.checkers.lineage import Lineage
from tidemark.testing.simulator.group_judge import GroupJudge, lineage_of, positions
from tidemark.testing.simulator.groups import SimulatedGroup

_READ_BYTES: Final = 1 << 20
_CUTS: Final = (RecordKind.TRUNCATE, RecordKind.RESET)


def apply(log: Lineage, record: JournalRecord) -> None:
    """Do to a log what a record says."""
    match record.kind:
        case RecordKind.BATCHES:
            for _, header in iter_headers(record.payload):
                log.extend(Position(header.partition_leader_epoch, header.next_offset))
        case RecordKind.EPOCH_START:
            log.begin(journal_records.decode_epoch_start(record.payload).position)
        case RecordKind.TRUNCATE:
            log.truncate(journal_records.decode_truncate(record.payload))
        case RecordKind.RESET:
            reset = journal_records.decode_reset(record.payload)
            log.reset(positions(reset.table), reset.start)
        case RecordKind.SYNCED:
            log.extend(Position(log.last.epoch, journal_records.decode_synced(record.payload)))
        case RecordKind.HARD_STATE | RecordKind.LOG_START | RecordKind.FORGET:
            pass


class GroupWatch(GroupJudge[GroupReplica]):
    """One group's, told of by what brokers write to their journals."""

    def __init__(self, group: SimulatedGroup) -> None:
        super().__init__(group)
        self._observers = group.observers
        self._said_rotten = ORIGIN
        """How far those have committed whose logs cannot be read, and compared, just now."""

    def batches(self, replica: GroupReplica, start: Offset, end: Offset) -> Iterable[BatchHeader]:
        return headers(replica.log, start, end)

    def changed(self, node: NodeId, replica: GroupReplica) -> None:
        if node in self.rotten and node not in self._observers:
            self._said_rotten = max(self._said_rotten, replica.committed)
        if node in self._observers:
            # First: by its own word it is all committed.
            committed = max(self.committed.last, self._said_rotten)
            serving.check_observer(self.name, node, replica.group.shape.last, committed)
        super().changed(node, replica)

    def leads(self, node: NodeId, replica: GroupReplica) -> None:
        super().leads(node, replica)
        if self.may_have_lost:
            return
        log, known = lineage_of(replica), dict(replica.producers.producers)
        for producer_id, newest in self.committed.newest.items():
            if log.contains(Position(newest.partition_leader_epoch, newest.next_offset)):
                producers.check_known(self.name, node, newest, known.get(producer_id))

    def has_failed(self, replica: GroupReplica) -> bool:
        return replica.failure is not None

    def written(self, node: NodeId, records: Sequence[JournalRecord]) -> None:
        """Records were written to the node's disk, and are not synced: a crash may keep them."""
        is_there = self.is_journaled and node not in self._gone
        if is_there and any(record.kind in _CUTS for record in records):
            log = self.durable_logs.of(node).copy()
            for record in records:
                apply(log, record)
                if record.kind in _CUTS:
                    self.durable_logs.written(node, log.copy())

    def durable(self, node: NodeId, record: JournalRecord) -> None:
        """A record has reached the node's disk."""
        if node in self._gone:
            return
        if self.is_journaled:
            self.durable_logs.synced(node)
            apply(self.durable_logs.of(node), record)
        if record.kind is RecordKind.HARD_STATE:
            self.elections.durable(node, journal_records.decode_hard_state(record.payload))

    def staged(self, node: NodeId, record: JournalRecord) -> None:
        """A record is about to be written."""
        if record.kind is RecordKind.TRUNCATE:
            self.cuts(node, journal_records.decode_truncate(record.payload))


class Watch:
    """The judges of all groups of a cluster."""

    def __init__(self, groups: Iterable[SimulatedGroup]) -> None:
        self.groups = {group.key: GroupWatch(group) for group in groups}

    def loses_power(self, node: NodeId) -> None:
        for group in self.groups.values():
            group.loses_power(node)

    @property
    def has_unclean(self) -> bool:
        """Whether some replica has lost its page cache, and has not caught up since."""
        return any(group.has_unclean for group in self.groups.values())

    @property
    def has_doubt(self) -> bool:
        """Whether a journal was damaged, and what was lost with it has not been made good."""
        return any(group.has_doubt for group in self.groups.values())

    def may_have_lost(self, key: PartitionKey) -> bool:
        """Whether a group may have lost, and not by mistake, what it has acknowledged."""
        return self.groups[key].may_have_lost

    def reads(self, key: PartitionKey, headers: Iterable[BatchHeader]) -> None:
        """Someone was given these batches."""
        if not self.may_have_lost(key):
            self.groups[key].committed.check_read(headers)

    def written(self, node: NodeId, records: Iterable[JournalRecord]) -> None:
        of_groups: defaultdict[PartitionKey, list[JournalRecord]] = defaultdict(list)
        for record in records:
            of_groups[record.key].append(record)
        for key, its_records in of_groups.items():
            self.groups[key].written(node, its_records)

    def durable(self, node: NodeId, records: Iterable[JournalRecord]) -> None:
        for record in records:
            self.groups[record.key].durable(node, record)

    def believe(self, node: NodeId, replicas: Iterable[GroupReplica]) -> None:
        """To these something has happened."""
        for replica in replicas:
            self.groups[replica.key].believes(node, replica)

    def says(self, node: NodeId, to: NodeId, messages: Sequence[PeerMessage]) -> None:
        for message in group_messages(messages):
            self.groups[message.key].says(node, to, message.message)


def headers(log: Log, start: Offset, end: Offset) -> Iterator[BatchHeader]:
    """The batches of a log between two offsets."""
    at = max(start, log.start_offset)
    while at < end:
        data = log.read(at, bytes_max=_READ_BYTES, end_offset=end).read()
        if not data:
            return
        for _, header in iter_headers(data):
            if header.base_offset >= at:
                yield header
            at = header.next_offset


def pieces(log: Log) -> Iterator[bytes]:
    """All of a log, whole batches at a time."""
    at = log.start_offset
    while at < log.end_offset:
        data = log.read(at, bytes_max=_READ_BYTES, end_offset=log.end_offset).read()
        yield data
        *_, (_, last) = iter_headers(data)
        at = last.next_offset
