"""The judges of all groups, told what the brokers do.

Each group has judges of its own, who outlive every broker: what was durable, committed or promised
once binds the processes that come after.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from tidemark.partitions.raft.entries import Configuration, EpochStart
from tidemark.partitions.raft.messages import (
    AppendRequest,
    AppendResponse,
    Ballot,
    HardState,
    Message,
    VoteResponse,
)
from tidemark.partitions.replication.group_replica import GroupReplica
from tidemark.partitions.replication.peer_messages import PeerMessage, group_messages
from tidemark.partitions.storage.journal import records as journal_records
from tidemark.partitions.storage.journal.records import JournalRecord, RecordKind
from tidemark.partitions.storage.log import Log
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.records.header import BatchHeader, iter_headers
from tidemark.protocol.types import Epoch, NodeId, Offset, Position
from tidemark.testing.checkers import beliefs, serving
from tidemark.testing.checkers.committed import CommittedLog
from tidemark.testing.checkers.durable import DurableLogs
from tidemark.testing.checkers.elections import Elections
from tidemark.testing.checkers.lineage import Lineage
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


class GroupWatch:
    """The judges of one group.

    With `flush=os` it may lose what it has acknowledged, but only by a loss of power of as many
    replicas as leave no majority that has not lost its page cache. Until then it is judged like
    the others, but for what is on the disks; after it, by its elections alone.
    """

    def __init__(self, group: SimulatedGroup) -> None:
        self.name = name = str(group.partition)
        self.is_journaled = group.is_journaled
        self.may_have_lost = False
        self._voters = Configuration(tuple(sorted(group.voters)))
        self._unclean: set[NodeId] = set()
        self.elections = Elections(name)
        self.committed = CommittedLog(name)
        self.durable_logs = DurableLogs(name)
        self._replicas: dict[NodeId, GroupReplica] = {}
        self._first_config: Configuration | None = None
        self._has_changed_config = False

    def epoch_of(self, node: NodeId) -> Epoch:
        """The newest that it has, or its disk."""
        replica, durable = self._replicas.get(node), self.elections.durable_epoch(node)
        return durable if replica is None else max(replica.epoch, durable)

    def starts(self, node: NodeId, replica: GroupReplica, hard_state: HardState) -> None:
        """A process has opened its replica."""
        self._replicas[node] = replica
        self.committed.restarts(node)
        self.elections.restarts(node, hard_state)
        if self.is_journaled:
            self.durable_logs.restarts(node, lineage_of(replica))

    @property
    def has_unclean(self) -> bool:
        return bool(self._unclean)

    def loses_power(self, node: NodeId) -> None:
        """What its page cache had may be gone."""
        if not self.is_journaled:
            self._unclean.add(node)
            self.may_have_lost |= not self._voters.agreed(lambda n: n not in self._unclean)

    def written(self, node: NodeId, records: Sequence[JournalRecord]) -> None:
        """Records were written to the node's disk, and are not synced: a crash may keep them."""
        if self.is_journaled and any(record.kind in _CUTS for record in records):
            log = self.durable_logs.of(node).copy()
            for record in records:
                apply(log, record)
                if record.kind in _CUTS:
                    self.durable_logs.written(node, log.copy())

    def durable(self, node: NodeId, record: JournalRecord) -> None:
        """A record has reached the node's disk."""
        if self.is_journaled:
            self.durable_logs.synced(node)
            apply(self.durable_logs.of(node), record)
        if record.kind is RecordKind.HARD_STATE:
            self.elections.durable(node, journal_records.decode_hard_state(record.payload))

    def staged(self, node: NodeId, replica: GroupReplica, record: JournalRecord) -> None:
        """A record is about to be written."""
        if record.kind is RecordKind.TRUNCATE and self.is_journaled:
            # The core's own table is cut already; the disk's is what will be.
            to = journal_records.decode_truncate(record.payload)
            self.committed.is_kept(node, self.durable_logs.of(node), to)

    def says(self, node: NodeId, to: NodeId, message: Message) -> None:
        """A message leaves a node."""
        match message:
            case VoteResponse(epoch=epoch, ballot=ballot, granted=True) if ballot != Ballot.PRE:
                self.elections.says_vote(node, epoch, to)
                if not self.may_have_lost:
                    self._votes_for(node, to, epoch)
            case AppendResponse(epoch=epoch, match=Position() as match):
                self.elections.says_epoch(node, epoch)
                # One of an older epoch was true once: it is as if it had been under way since.
                if self.is_journaled and self.elections.durable_epoch(node) == epoch:
                    self.durable_logs.says_match(node, match)
            case AppendRequest(epoch=epoch):
                self.elections.leads(node, epoch)
            case _:
                pass

    def changed(self, node: NodeId, replica: GroupReplica) -> None:
        """At the end of a turn in which something about a replica has changed."""
        self.elections.is_at(node, replica.epoch)
        serving.watermark_is_in_log(self.name, node, replica.high_watermark, replica.log_end)
        if replica.committed > self.committed.told(node) and not self.may_have_lost:
            self._commits(node, replica)
        if replica.is_leader:
            self.elections.leads(node, replica.epoch)
        if replica.is_serving:
            serving.may_serve(self.name, node, replica.epoch, replica.committed)

    def leads(self, node: NodeId, replica: GroupReplica) -> None:
        """A replica has become its group's leader."""
        self.elections.leads(node, replica.epoch)
        if self.may_have_lost:
            return
        self.committed.is_held_by_leader(node, replica.epoch, lineage_of(replica))

    def believes(self, node: NodeId, replica: GroupReplica) -> None:
        """Something has happened to a replica: does it still take things for what they are?"""
        if replica.failure is not None:
            return
        if not self.is_journaled:
            if replica.group.is_clean:
                self._unclean.discard(node)
            return
        group, logs = replica.group, self.durable_logs
        beliefs.is_durable(self.name, node, group.durable, logs.of(node))
        if not replica.is_leader:
            return
        for progress in group.progress():
            follower, match = progress.node, progress.match
            beliefs.is_ahead(self.name, node, follower, match, progress.next)
            # One that has gone on to a later epoch may have cut it.
            if self.elections.durable_epoch(follower) <= group.epoch:
                beliefs.is_matched(self.name, node, follower, match, logs.of(follower))

    def _votes_for(self, node: NodeId, candidate: NodeId, epoch: Epoch) -> None:
        voter, voted = self._replicas[node], self._replicas.get(candidate)
        if voted is not None and voted.epoch == epoch:
            logs = lineage_of(voter), lineage_of(voted)
            self.committed.is_voted_for(node, logs[0], candidate, logs[1], epoch)

    def _commits(self, node: NodeId, replica: GroupReplica) -> None:
        committed = replica.committed
        if replica.is_leader:
            config = replica.group.config
            self._first_config = self._first_config or config
            self._has_changed_config |= config != self._first_config
            if self.is_journaled:
                self.durable_logs.is_committed(node, config, committed)
            if self.is_journaled and not self._has_changed_config:
                self.durable_logs.is_safe(node, config, committed)
        self.committed.advances(
            node,
            in_epoch=replica.epoch,
            committed=committed,
            starts=positions(replica.group.shape.rows),
            batches=headers(replica.log, self.committed.told(node).offset, committed.offset),
        )


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

    def may_have_lost(self, key: PartitionKey) -> bool:
        """Whether a group may have lost, and not by mistake, what it has acknowledged."""
        return self.groups[key].may_have_lost

    def reads(self, key: PartitionKey, headers: Iterable[BatchHeader]) -> None:
        """Someone was given these batches."""
        if not self.may_have_lost(key):
            self.groups[key].committed.is_read(headers)

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


def positions(rows: Iterable[EpochStart]) -> list[Position]:
    return [row.position for row in rows]


def lineage_of(replica: GroupReplica) -> Lineage:
    """The epochs that a replica's core has, and where its log ends."""
    return Lineage(positions(replica.group.shape.rows), replica.log_end)


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
