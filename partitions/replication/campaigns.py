"""Which of the leaderless groups this broker campaigns for, and when.

A group without a living majority is left alone: there is no use in asking. One whose only voter is
here asks nobody and waits for nobody. The others go through the queue (`elections`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Mapping
from random import Random
from typing import Final, NamedTuple

from tidemark.partitions.raft.candidate import Candidate, PreCandidate
from tidemark.partitions.raft.follower import Follower
from tidemark.partitions.raft.group import Group
from tidemark.partitions.raft.messages import Ballot, VoteRequest
from tidemark.partitions.replication.elections import ElectionQueue, Priority
from tidemark.partitions.replication.group_replica import GroupReplica
from tidemark.partitions.replication.peer_table import PeerTable
from tidemark.partitions.replication.preference import election_order
from tidemark.partitions.replication.timing import Timing
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.types import NO_EPOCH, NodeId

_ASKED_AGAIN_MAX: Final = 3
_STANDS_AGAIN: Final = 2
"""Campaign timeouts."""


class _Asked(NamedTuple):
    """A group that has just begun to campaign."""

    due: float
    """When to look whether it was answered."""
    replica: GroupReplica
    at: float
    times: int
    """How often it may ask again."""


class Campaigns:
    """Of one broker. A group is here while it has a vote, and no leader that is known."""

    def __init__(self, node_id: NodeId, timing: Timing, peers: PeerTable, rng: Random) -> None:
        self._node_id = node_id
        self._timing = timing
        self._peers = peers
        self._queue = ElectionQueue(timing, rng)
        self._parked: dict[PartitionKey, None] = {}
        self._alone: dict[PartitionKey, None] = {}
        # Whose leader was heard of just now: it is told by the end of the turn, and is lost by then
        # if it had more to say. Then nobody is told of either.
        self._heard: dict[PartitionKey, None] = {}
        self._young_until: float | None = None
        self._unanswered: deque[_Asked] = deque()
        self.last_resorts: Collection[NodeId] = ()
        """Brokers that are to lead nothing that another can lead."""

    def __bool__(self) -> bool:
        """Whether there are groups that this broker campaigns for, or is to."""
        return bool(self._queue)

    def seek(self, replica: GroupReplica, now: float) -> None:
        """The group has no leader, unless its replica knows better."""
        if replica.failure is not None or not replica.group.is_voter:
            return
        if replica.leader is not None:
            self._heard[replica.key] = None
            return
        if replica.group.config.members == (self._node_id,):
            # A candidate already waits for its own vote only, that is for the disk.
            if isinstance(replica.group.role, Follower):
                self._alone[replica.key] = None
        elif self._may_win(replica):
            self._queue.slowness_seconds = self._slowness_seconds()
            self._queue.add(
                replica.key,
                now,
                priority=Priority(replica.priority),
                rank=self._rank(replica, now),
                is_first=replica.epoch == NO_EPOCH,
                after_seconds=self._wait_for_votes_seconds(replica),
            )
        else:
            self._parked[replica.key] = None

    def _wait_for_votes_seconds(self, replica: GroupReplica) -> float:
        """For so long somebody may yet win this epoch by votes that are on their way.

        A leader that stands again, for a change of voters, waits twice as long as one whose turn
        has come. The others live, and stand themselves if it takes too long; and a campaign that
        is given up while slow disks store the votes leaves the change undone, as would the next.
        """
        if not self._has_voted(replica):
            return 0.0
        stands_again = isinstance(replica.group.role, Candidate)
        return self._timing.campaign_timeout_seconds * (_STANDS_AGAIN if stands_again else 1)

    def _has_voted(self, replica: GroupReplica) -> bool:
        """Whether somebody may yet win this epoch by its vote, perhaps this one: the lead is being
        handed over, or a candidate was quicker than the news that the leader is dead. Else, where
        machines are busy and votes take their time, one candidate would depose the other."""
        candidate, epoch = replica.hard_state.voted_for, replica.epoch
        return (
            candidate is not None
            and replica.hard_state.epoch == epoch
            # Nobody has led it so far, who could have resigned.
            and replica.group.shape.last.epoch < epoch
            and (candidate == self._node_id or self._peers.is_alive(candidate))
        )

    def asked(
        self, replica: GroupReplica, source: NodeId, request: VoteRequest, now: float
    ) -> None:
        """Another voter stands for the group, and is about to be answered: if it can have this
        one's vote, this one waits for what becomes of it. One that only asks whether it would be
        elected is waited for if it goes first."""
        key, group = replica.key, replica.group
        if (
            key not in self._queue
            or request.epoch <= group.epoch
            or request.last < group.shape.last
            or (request.ballot is Ballot.PRE and not self._goes_first(source, replica))
        ):
            return
        if self._queue.leave_to_another(key, now) and isinstance(group.role, PreCandidate):
            replica.tell(Group.withdraw)

    def _goes_first(self, other: NodeId, replica: GroupReplica) -> bool:
        preferred = replica.preference or replica.group.config.members
        both = [node for node in preferred if node in (other, self._node_id)]
        return len(both) == 2 and election_order(both, self.last_resorts)[0] == other

    def _slowness_seconds(self) -> float:
        return max(0.0, self._peers.delay_seconds - self._timing.calm_heartbeat_seconds)

    def remove(self, key: PartitionKey, now: float) -> None:
        """It has a leader, or is no concern of this broker any more."""
        self._queue.remove(key, now)
        self._parked.pop(key, None)
        self._alone.pop(key, None)
        self._heard.pop(key, None)

    def take_parked(self, now: float) -> list[PartitionKey]:
        """Another broker lives: these may have a majority now."""
        self._queue.hurry(now)
        parked, self._parked = self._parked, {}
        return list(parked)

    def take_due(
        self, now: float, replicas: Mapping[PartitionKey, GroupReplica]
    ) -> Iterator[GroupReplica]:
        """The groups to campaign for now."""
        if self._young_until is None:
            self._young_until = now + self._timing.failure_timeout_seconds
        yield from self._take_unanswered(now, replicas)
        heard, self._heard = self._heard, {}
        for key in heard:
            # Once more and not again: from now on, who loses its leader is told of it.
            if replicas[key].leader is None:
                self.seek(replicas[key], now)

        def was_read(key: PartitionKey, since: float) -> bool:
            return self._was_read(replicas[key], since)

        self._queue.slowness_seconds = self._slowness_seconds()
        alone, self._alone = self._alone, {}
        for key in (*alone, *self._queue.take_due(now, was_read)):
            replica = replicas[key]
            if self._may_win(replica):
                if not _waits_for_its_disk(replica):
                    yield replica
                    self._look_again_at(replica, asked=now, times=_ASKED_AGAIN_MAX, now=now)
            else:
                self._queue.remove(key, now)
                self._parked[key] = None

    def _take_unanswered(
        self, now: float, replicas: Mapping[PartitionKey, GroupReplica]
    ) -> Iterator[GroupReplica]:
        unanswered = self._unanswered
        while unanswered and unanswered[0].due <= now:
            asked = unanswered.popleft()
            replica, times = asked.replica, asked.times
            is_here = replicas.get(replica.key) is replica
            if not is_here or not isinstance(replica.group.role, PreCandidate):
                continue
            if not self._was_read(replica, asked.at):
                self._look_again_at(replica, asked=asked.at, times=times, now=now)
                continue
            yield replica
            if times > 1:
                self._look_again_at(replica, asked=now, times=times - 1, now=now)

    def _look_again_at(
        self, replica: GroupReplica, *, asked: float, times: int, now: float
    ) -> None:
        self._unanswered.append(_Asked(now + self._timing.ask_again_seconds, replica, asked, times))

    def _was_read(self, replica: GroupReplica, since: float) -> bool:
        """Whether enough voters have read what was sent until then to be elected by; also if there
        is no such majority, and so no use in waiting."""
        peers = self._peers
        return not self._may_win(replica) or replica.group.config.agreed(
            lambda node: peers.has_answered(node, since)
        )

    def next_deadline(self) -> float:
        """When there may be one; it may be in the past."""
        if self._alone or self._heard:
            return 0.0
        unanswered = self._unanswered[0].due if self._unanswered else float("inf")
        return min(unanswered, self._queue.next_deadline())

    def _may_win(self, replica: GroupReplica) -> bool:
        return replica.group.config.agreed(self._peers.is_alive)

    def _rank(self, replica: GroupReplica, now: float) -> int:
        """How many living voters had better lead. Soon after a start, those that are not known to
        live may as well."""
        is_young = self._young_until is not None and now < self._young_until
        rank = 0
        preferred = replica.preference or replica.group.config.members
        for node in election_order(preferred, self.last_resorts):
            if node == self._node_id:
                break
            rank += is_young or self._peers.is_alive(node)
        return rank


def _waits_for_its_disk(replica: GroupReplica) -> bool:
    """Whether it is a candidate that has not asked anybody yet: its own vote is not durable."""
    group = replica.group
    return isinstance(group.role, Candidate) and not group.is_hard_state_durable
