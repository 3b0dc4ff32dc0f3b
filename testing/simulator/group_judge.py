"""The judges of one group, whatever it is that its replicas keep their logs in.

They outlive every broker: what was durable, committed or promised once binds the processes that
come after.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import Generic, Protocol, TypeVar

from tidemark.partitions.raft.candidate import Candidate
from tidemark.partitions.raft.entries import Configuration, EpochStart
from tidemark.partitions.raft.group import Group
from tidemark.partitions.raft.leader import Leader
from tidemark.partitions.raft.messages import (
    AppendRequest,
    AppendResponse,
    Ballot,
    HandOver,
    HardState,
    Message,
    VoteRequest,
    VoteResponse,
)
from tidemark.protocol.records.header import BatchHeader
from tidemark.protocol.types import NO_EPOCH, Epoch, NodeId, Offset, Position
from tidemark.testing.checkers import beliefs, serving
from tidemark.testing.checkers.committed import CommittedLog
from tidemark.testing.checkers.doubts import Doubts
from tidemark.testing.checkers.durable import DurableLogs
from tidemark.testing.checkers.elections import Elections
from tidemark.testing.checkers.lineage import Lineage
from tidemark.testing.simulator.groups import SimulatedGroup


class Judged(Protocol):
    """What of a replica is looked at."""

    @property
    def group(self) -> Group: ...
    @property
    def epoch(self) -> Epoch: ...
    @property
    def committed(self) -> Position: ...
    @property
    def is_leader(self) -> bool: ...
    @property
    def is_serving(self) -> bool: ...
    @property
    def log_end(self) -> Offset: ...


R = TypeVar("R", bound=Judged)


class GroupJudge(Generic[R]):
    """Of one group.

    With `flush=os` it may lose what it has acknowledged, but only by a loss of power of as many
    replicas as leave no majority that has not lost its page cache. Until then it is judged like
    the others, but for what is on the disks; after it, by its elections alone.
    """

    def __init__(self, group: SimulatedGroup) -> None:
        self.name = name = str(group.partition)
        self.is_journaled = group.is_journaled
        self.may_have_lost = False
        self.unclean: set[NodeId] = set()
        self.elections = Elections(name)
        self.committed = CommittedLog(name, may_be_compacted=group.is_compacted)
        self.durable_logs = DurableLogs(name)
        # The newest that was committed, and in which epoch.
        self._first_voters = self._voters = Configuration(tuple(sorted(group.voters)))
        self._voters_epoch = NO_EPOCH
        self._replicas: dict[NodeId, R] = {}
        self._gone: set[NodeId] = set()
        """They have given up what they held, and hold nothing since."""
        self._returned: set[NodeId] = set()
        """They have come back, and no leader that knows of it has had them hold its log."""
        self.rotten: set[NodeId] = set()
        """Their logs may not be readable."""
        self._in_doubt = Doubts(name, self.elections)
        """They have forgotten what they promised, and their votes decide nothing."""

    def batches(self, replica: R, start: Offset, end: Offset) -> Iterable[BatchHeader]:
        """What lies in a replica's log between two offsets."""
        raise NotImplementedError

    def has_failed(self, replica: R) -> bool:
        """Whether it takes no part any more."""
        raise NotImplementedError

    def epoch_of(self, node: NodeId) -> Epoch:
        """The newest that it has, or its disk."""
        replica, durable = self._replicas.get(node), self.elections.durable_epoch(node)
        return durable if replica is None else max(replica.epoch, durable)

    def _looks_sure(self, node: NodeId, replica: R) -> None:
        if replica.group.is_clean:
            self._returned.discard(node)
            self._in_doubt.commits(replica.committed)  # what gets it sure, in this very turn
            self._in_doubt.becomes_sure(node)

    def starts(self, node: NodeId, replica: R, hard_state: HardState) -> None:
        """A process has opened its replica."""
        self._replicas[node] = replica
        if node in self._gone:
            self._gone.discard(node)
            self._returned.add(node)
        self.committed.restarts(node)
        self.elections.restarts(node, hard_state)
        if self.is_journaled:
            self.durable_logs.restarts(node, lineage_of(replica))
        elif not replica.group.is_clean:
            self.unclean.add(node)  # also if it was, and died before that was on the disk

    def gives_up(self, node: NodeId) -> None:
        """A broker does not hold the group any more, and may lose all that it had of it.

        What it has promised still binds it: a vote is compared with those that were given before.
        """
        self._replicas.pop(node, None)
        self._gone.add(node)
        self.committed.restarts(node)
        self.elections.forgets(node)
        self.durable_logs.forgets(node)
        self._in_doubt.forgets(node)

    def may_be_damaged(self, node: NodeId) -> bool:
        """Whether others have what its disk loses: in none of those sides is it alone."""
        sides = [side for config in self._in_force() for side in (config.voters, config.outgoing)]
        return self.is_journaled and all(side != (node,) for side in sides)

    @property
    def has_doubt(self) -> bool:
        """Whether somebody's disk has lost what it promised, and has not got over it."""
        return bool(self._in_doubt)

    def loses_newest(self, node: NodeId, kept: HardState) -> None:
        """Its disk has lost what it had last, epochs and votes too."""
        logs = [
            *map(lineage_of, self._replicas.values()),
            *map(self.durable_logs.of, self._replicas),
        ]
        self.gives_up(node)
        self._in_doubt.loses_newest(node, logs)
        self.elections.loses_newest(node, kept)

    @property
    def has_unclean(self) -> bool:
        return bool(self.unclean)

    def loses_power(self, node: NodeId) -> None:
        """What its page cache had may be gone."""
        if not self.is_journaled:
            self.unclean.add(node)
            self.may_have_lost |= not all(
                config.agreed(lambda n: n not in self.unclean) for config in self._in_force()
            )

    def _in_force(self) -> list[Configuration]:
        """Those by whose majorities something may have been committed, or may be next."""
        shapes = [replica.group.shape for replica in self._replicas.values()]
        newer = [shape.config for shape in shapes if shape.last.epoch >= self._voters_epoch]
        return [self._voters, *newer]

    def cuts(self, node: NodeId, to: Position) -> None:
        """A replica is about to write that nothing behind `to` is left."""
        if self.is_journaled:
            # The core's own table is cut already; the disk's is what will be.
            log = self.durable_logs.of(node)
            self.committed.check_cut(node, self.epoch_of(node), log, to)

    def says(self, node: NodeId, to: NodeId, message: Message) -> None:
        """A message leaves a node."""
        if isinstance(message, AppendRequest):
            self.elections.leads(node, message.epoch)
        elif isinstance(message, AppendResponse):
            if message.match is not None:
                self._acknowledges(node, message.epoch, message.match)
        elif isinstance(message, HandOver):
            self.elections.hands_over(to, message.epoch)
        elif isinstance(message, VoteRequest) and message.ballot is Ballot.MIGRATION:
            self.elections.asks_past_a_leader(node, message.epoch)
        elif isinstance(message, VoteResponse) and message.granted:
            if message.ballot == Ballot.PRE:
                return
            self.elections.says_vote(node, message.epoch, to)
            if not self.may_have_lost and node not in self._in_doubt:
                self._votes_for(node, to, message.epoch)

    def _acknowledges(self, node: NodeId, epoch: Epoch, match: Position) -> None:
        self.elections.says_epoch(node, epoch)
        # One of an older epoch was true once: it is as if it had been under way since.
        if self.is_journaled and self.elections.durable_epoch(node) == epoch:
            self.durable_logs.says_match(node, match)

    def changed(self, node: NodeId, replica: R) -> None:
        """At the end of a turn in which something about a replica has changed."""
        committed = replica.committed
        self.elections.runs_at(node, replica.epoch)
        self._in_doubt.commits(committed)
        serving.check_watermark(self.name, node, committed.offset, replica.log_end)
        is_readable = not self.may_have_lost and node not in self.rotten
        if committed > self.committed.told(node) and is_readable:
            self._commits(node, replica)
        if replica.is_leader:
            self.elections.leads(node, replica.epoch)
        if replica.is_serving:
            serving.check_serves(self.name, node, replica.epoch, committed)
        self._looks_sure(node, replica)

    def leads(self, node: NodeId, replica: R) -> None:
        """A replica has become its group's leader."""
        self.elections.leads(node, replica.epoch)
        self.durable_logs.opens(replica.epoch, replica.group.config)
        if self.may_have_lost:
            return
        self.committed.check_leader(node, replica.epoch, lineage_of(replica))

    def believes(self, node: NodeId, replica: R) -> None:
        """Something has happened to a replica: does it still take things for what they are?"""
        if self.has_failed(replica):
            return
        group = replica.group
        self._looks_sure(node, replica)
        if not self.is_journaled:
            if group.is_clean:
                self.unclean.discard(node)
            return
        logs = self.durable_logs
        beliefs.check_in_log(self.name, node, group.durable, group.shape)
        beliefs.check_durable(self.name, node, group.durable, logs.of(node))
        if not replica.is_leader:
            return
        for progress in group.progress():
            follower, match = progress.node, progress.match
            beliefs.check_next(self.name, node, follower, match, progress.next)
            # One that has gone on to a later epoch may have cut it.
            if follower in self._gone or follower in self._returned:
                continue
            if self.elections.durable_epoch(follower) <= group.epoch:
                beliefs.check_match(self.name, node, follower, match, logs.of(follower))

    def _votes_for(self, node: NodeId, candidate: NodeId, epoch: Epoch) -> None:
        voter, voted = self._replicas[node], self._replicas.get(candidate)
        # Who has lost power since, and the end of its log, is not elected by a vote that is late.
        if voted is None or not isinstance(voted.group.role, Candidate | Leader):
            return
        if voted.epoch == epoch:
            logs = lineage_of(voter), lineage_of(voted)
            self.committed.check_vote(node, logs[0], candidate, logs[1], epoch)

    def _commits(self, node: NodeId, replica: R) -> None:
        committed = replica.committed
        if replica.is_leader:
            config = replica.group.config
            if committed.epoch >= self._voters_epoch:
                self._voters, self._voters_epoch = config, committed.epoch
            if self.is_journaled:
                damaged = self._in_doubt
                self.durable_logs.check_committed(node, config, committed, damaged=damaged)
            if self.is_journaled and not (self._in_doubt or self._gone or self._returned):
                self.durable_logs.check_safe(node, self._first_voters, committed)
        told = self.committed.told(node)
        self.committed.advances(
            node,
            in_epoch=replica.epoch,
            committed=committed,
            starts=_starts_behind(told, replica.group.shape.rows),
            batches=self.batches(replica, told.offset, committed.offset),
        )


def _starts_behind(told: Position, rows: Sequence[EpochStart]) -> list[Position]:
    """Those of the epochs that begin behind `told`; they ascend."""
    newer = takewhile(lambda row: row.position > told, reversed(rows))
    return [row.position for row in newer][::-1]


def positions(rows: Iterable[EpochStart]) -> list[Position]:
    return [row.position for row in rows]


def lineage_of(replica: Judged) -> Lineage:
    """The epochs that a replica's core has, and where its log ends."""
    return Lineage(positions(replica.group.shape.rows), replica.log_end)
