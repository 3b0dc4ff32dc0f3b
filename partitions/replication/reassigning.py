"""Groups whose replicas are to be on other brokers, as far as they are led here.

What is wished comes from the cluster's metadata, and every broker has all of it; the leader of a
group carries it out, one step at a look, each decided on what the group is like now:

1. the brokers that are to come are learners, one at a time, once they have heard of the wish too,
   and are sent the log within a number of bytes per second that holds for the whole broker;
2. a leader that is to go hands over to one that stays. Where nobody does, the group first goes over
   to the new voters with its leader;
3. writes are held for a moment, and the group goes over to the new voters, by its own change of
   configuration at the starts of two epochs;
4. the wish has come true once the new voters have committed an entry of their own. The metadata's
   leader strikes it then, and only then do the brokers that left give up what they hold.

Nothing of it is durable here: whoever leads next finds the wish, and the group as it is. A wish is
cancelled by another one, for the voters that the group had.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from functools import partial
from typing import Final

from tidemark.partitions.raft.entries import Configuration
from tidemark.partitions.raft.group import Group
from tidemark.partitions.raft.progress import NodeProgress
from tidemark.partitions.replication.group_replica import GroupReplica
from tidemark.partitions.replication.node import ReplicationNode
from tidemark.partitions.replication.reassignment_values import (
    NO_LIMIT,
    ReassignmentState,
    ReassignmentTiming,
    ReplicaWish,
    Stage,
)
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.errors import RequestError
from tidemark.protocol.types import NodeId
from tidemark.protocol.values import dataclass

__all__ = [
    "NO_LIMIT",
    "ReassignmentState",
    "ReassignmentTiming",
    "Reassignments",
    "ReplicaWish",
    "Stage",
    "may_be_wished_later",
]

_RATE_S: Final = 2.0


@dataclass(slots=True)
class _Job:
    wish: ReplicaWish
    stage: Stage = Stage.WAIT
    why: str = ""
    learner: NodeId | None = None
    is_stuck: bool = False
    """Others may have its turn."""
    not_before: float = 0.0
    failures: int = 0
    paused: GroupReplica | None = None
    paused_at: float = 0.0
    target: tuple[NodeId, ...] = ()
    """While paused: the voters to go over to."""
    seen: tuple[NodeId, int, int] | None = None
    """How the learner was seen last, and since when it has been so."""
    seen_at: float = 0.0
    sent: dict[NodeId, int] = field(default_factory=dict)
    copied_bytes: int = 0
    remaining_bytes: int = 0
    rate: float = 0.0
    measured_s: float = 0.0
    looked_at: float | None = None

    @property
    def is_under_way(self) -> bool:
        """Whether it is to be looked at each time."""
        return self.paused is not None or (self.stage is not Stage.WAIT and not self.is_stuck)


class Reassignments:
    """All that a broker has heard of. It is told what is wished, and to look, again and again."""

    def __init__(
        self,
        node: ReplicationNode,
        *,
        bytes_per_second: int = NO_LIMIT,
        timing: ReassignmentTiming | None = None,
    ) -> None:
        self._node = node
        self._timing = timing or ReassignmentTiming()
        self._jobs: dict[PartitionKey, _Job] = {}
        self._looked_at: float | None = None
        self._now = 0.0
        self._pauses: list[float] = []
        self._waiting_from = 0
        self.bytes_per_second = bytes_per_second
        """What all learners of this broker's groups are sent together, at most."""
        self.bytes_sent = 0
        """To learners, in all."""

    def __bool__(self) -> bool:
        return bool(self._jobs)

    # What is wished

    def wish(self, key: PartitionKey, wish: ReplicaWish) -> None:
        """The group is to be on these brokers; in place of an earlier wish, if there was one."""
        job = self._jobs.get(key)
        if job is None:
            self._jobs[key] = _Job(wish)
        elif job.wish != wish:
            self._resume(job)
            self._jobs[key] = _Job(wish)

    def strike(self, key: PartitionKey) -> None:
        """Nothing is wished of the group any more: whoever has no vote is sent nothing more."""
        job = self._jobs.pop(key, None)
        replica = self._node.get(key)
        if job is None:
            return
        self._resume(job)
        if replica is not None and replica.is_leader:
            for each in replica.group.progress():
                if not each.is_voter:
                    replica.tell(partial(Group.remove_learner, node=each.node))

    def set_all(self, wishes: Mapping[PartitionKey, ReplicaWish], version: int) -> None:
        """These, and no others, by that version of the metadata."""
        self._node.peers.metadata_version = version
        for key in [key for key in self._jobs if key not in wishes]:
            self.strike(key)
        for key, wish in wishes.items():
            self.wish(key, wish)

    # What has become of it

    def done(self) -> list[tuple[PartitionKey, ReplicaWish]]:
        """Wishes that have come true in groups led here: they can be struck."""
        return [(key, job.wish) for key, job in self._jobs.items() if job.stage is Stage.DONE]

    def state(self, key: PartitionKey) -> ReassignmentState | None:
        """How a wish is doing, if the group is led here."""
        job, replica = self._jobs.get(key), self._node.get(key)
        if job is None or replica is None or not replica.is_leader:
            return None
        return ReassignmentState(
            stage=job.stage,
            why=job.why,
            learner=job.learner,
            copied_bytes=job.copied_bytes,
            remaining_bytes=job.remaining_bytes,
            bytes_per_second=job.rate,
        )

    def states(self) -> Iterator[tuple[PartitionKey, ReassignmentState]]:
        """Of the groups that are led here."""
        for key in self._jobs:
            state = self.state(key)
            if state is not None:
                yield key, state

    def take_pauses(self) -> list[float]:
        """For how many seconds writes were held, each time since this was last asked for."""
        pauses, self._pauses = self._pauses, []
        return pauses

    @property
    def is_changing(self) -> bool:
        """Whether writes of some group are held: it had better be looked at soon."""
        return any(job.paused is not None for job in self._jobs.values())

    # Doing it

    def look(self, now: float) -> None:
        """Do the next thing that can be done for each; in a turn."""
        self._now = now
        elapsed = 0.0 if self._looked_at is None else now - self._looked_at
        self._looked_at = now
        room = self._timing.copies_max
        copying: list[tuple[GroupReplica, _Job]] = []
        # Those that have begun go on, before others begin.
        begun = [item for item in self._jobs.items() if item[1].is_under_way]
        for key, job in (*begun, *self._next_waiting()):
            replica = self._node.get(key)
            if replica is None or replica.failure is not None:
                self._idle(job)
                continue
            if job.paused is not None:
                self._look_at_paused(job, replica, now)
            elif room > 0 or job.stage is Stage.DONE:
                self._look_at(job, replica, now)
            if job.stage not in (Stage.WAIT, Stage.DONE) and not job.is_stuck:
                room -= 1
            self._measure(job, replica, now)
            if job.stage is Stage.COPY and replica.is_leader and job.learner is not None:
                copying.append((replica, job))
        self._allow(copying, elapsed)

    def _next_waiting(self) -> list[tuple[PartitionKey, _Job]]:
        """Some of those that wait for their turn, or in whose way something stands: there may be
        thousands, and each is looked at now and then."""
        waiting = [item for item in self._jobs.items() if not item[1].is_under_way]
        most = self._timing.waiting_looked_at_max
        if len(waiting) <= most:
            return waiting
        first = self._waiting_from % len(waiting)
        self._waiting_from = first + most
        return (waiting + waiting)[first : first + most]

    def _look_at(self, job: _Job, replica: GroupReplica, now: float) -> None:
        group = replica.group
        job.why, job.is_stuck = "", False
        if not replica.is_serving:
            self._idle(job)
            return
        config = group.config
        if config.is_joint or group.successor is not None:
            job.stage = Stage.CHANGE  # the core finishes what was begun
            return
        if config.version > job.wish.at:
            self._idle(job)
            job.why, job.is_stuck = "this broker has yet to hear of a newer wish", True
            return
        are_there = {*config.voters} == {*job.wish.replicas}
        if are_there and config.version == job.wish.at:
            # Serving is to have committed an entry under this configuration, or a later one.
            # Those that went out stay learners until it is struck: they are to hear of it.
            job.stage, job.learner, job.remaining_bytes = Stage.DONE, None, 0
            return
        if replica.key in self._node.moves:
            job.stage = Stage.LEAD
            return
        self._remove_strangers(job, replica)
        if not (are_there or self._copy(job, replica, now)) or now < job.not_before:
            return
        self._go_over(job, replica, now)

    # Learners

    def _copy(self, job: _Job, replica: GroupReplica, now: float) -> bool:
        """Whether all that are to come hold nearly everything; else there is one to be sent it."""
        group, stage = replica.group, job.stage
        job.stage, job.learner = Stage.COPY, None
        progress = {each.node: each for each in group.progress()}
        dead: list[NodeId] = []
        for node in job.wish.replicas:
            if node == self._node.node_id:
                continue
            if not group.peers.is_alive(node):
                dead.append(node)
            elif not self._node.peers.has_applied(node, job.wish.at):
                # An earlier command, which it has yet to hear of, may have it give up what it has.
                job.why, job.is_stuck = f"broker {node} has yet to hear of the wish", True
                return False
            elif node not in progress:
                replica.tell(partial(_begin_with, node=node))
                job.learner = node
                return False
            elif not self._is_near(replica, progress[node]):
                job.learner = node
                self._note_silence(job, progress[node], now)
                return False
            elif not progress[node].is_voter:
                replica.tell(partial(Group.allow, node=node, more_bytes=None))
        if dead:
            job.why, job.is_stuck = f"broker {dead[0]} cannot be reached", True
            return False
        if stage in (Stage.LEAD, Stage.CHANGE):
            job.stage = stage
        return True

    def _remove_strangers(self, job: _Job, replica: GroupReplica) -> None:
        """Learners that an earlier wish was about."""
        for each in replica.group.progress():
            if not each.is_voter and each.node not in job.wish.replicas:
                replica.tell(partial(Group.remove_learner, node=each.node))

    def _is_near(self, replica: GroupReplica, each: NodeProgress) -> bool:
        has_answered = each.answers > 0
        return has_answered and self._lag_bytes(replica, each) <= self._timing.near_bytes

    def _lag_bytes(self, replica: GroupReplica, each: NodeProgress) -> int:
        """About how much of the log a follower lacks, as if all records were of one size."""
        log = replica.log
        offset = min(max(each.match.offset, log.start_offset), log.end_offset)
        records = log.end_offset - log.start_offset
        return log.size_bytes * (log.end_offset - offset) // records if records else 0

    def _note_silence(self, job: _Job, each: NodeProgress, now: float) -> None:
        """One that takes nothing in does not keep others from their turn."""
        seen = (each.node, each.answers, each.bytes_sent)
        if seen != job.seen:
            job.seen, job.seen_at = seen, now
        elif now - job.seen_at >= self._timing.silence_s:
            job.why, job.is_stuck = f"broker {each.node} does not take in what it is sent", True

    def _allow(self, copying: list[tuple[GroupReplica, _Job]], elapsed: float) -> None:
        """Each that is being copied gets an equal part of what this broker may send by now."""
        share: int | None = None
        if self.bytes_per_second != NO_LIMIT and copying:
            seconds = min(elapsed, self._timing.refill_max_s)
            share = int(self.bytes_per_second * seconds / len(copying))
        for replica, job in copying:
            assert job.learner is not None
            replica.tell(partial(Group.allow, node=job.learner, more_bytes=share))

    def _measure(self, job: _Job, replica: GroupReplica, now: float) -> None:
        elapsed = 0.0 if job.looked_at is None else now - job.looked_at
        job.looked_at = now
        if job.stage is Stage.WAIT and not job.sent and not job.rate:
            return  # nothing has been sent by it
        sent = 0
        for each in replica.group.progress():
            if each.is_voter:
                job.sent.pop(each.node, None)
                continue
            before = job.sent.get(each.node, 0)
            sent += each.bytes_sent - before if each.bytes_sent >= before else each.bytes_sent
            job.sent[each.node] = each.bytes_sent
            if each.node == job.learner:
                job.remaining_bytes = self._lag_bytes(replica, each)
        if job.learner is None:
            job.remaining_bytes, job.measured_s = 0, 0.0
        job.copied_bytes += sent
        self.bytes_sent += sent
        if elapsed > 0:
            # A mean over the last two seconds, about.
            job.measured_s = min(job.measured_s + elapsed, _RATE_S)
            job.rate += (sent / elapsed - job.rate) * min(1.0, elapsed / job.measured_s)

    # Going over

    def _go_over(self, job: _Job, replica: GroupReplica, now: float) -> None:
        wanted, me = job.wish.replicas, self._node.node_id
        group = replica.group
        voters = wanted
        if me not in wanted:
            heirs = [node for node in wanted if node in group.config.voters]
            if heirs:
                self._hand_over(job, replica, heirs, now)
                return
            voters = (*wanted, me)
        job.stage, job.target = Stage.CHANGE, tuple(sorted(voters))
        job.paused, job.paused_at = replica, now
        replica.pause()
        self._look_at_paused(job, replica, now)

    def _hand_over(self, job: _Job, replica: GroupReplica, heirs: list[NodeId], now: float) -> None:
        """First, while nothing else has begun: the next leader goes on with it."""
        job.stage = Stage.LEAD
        alive = [node for node in heirs if replica.group.peers.is_alive(node)]
        try:
            self._node.move_leader(replica.key, (alive or heirs)[0], now + self._timing.lead_s)
        except RequestError as error:
            job.why = error.message or str(error)
        self._try_later(job, now)

    def _look_at_paused(self, job: _Job, replica: GroupReplica, now: float) -> None:
        """Nothing is written: so nobody waits whom the change of epochs would send away."""
        group = replica.group
        config = group.config
        has_changed = config == Configuration(job.target, version=job.wish.at)
        is_elsewhere = replica.leader not in (None, self._node.node_id)
        if is_elsewhere or (has_changed and replica.is_serving):
            job.failures, job.not_before = 0, 0.0
            self._resume(job)
        elif now >= job.paused_at + self._timing.pause_s:
            self._resume(job)
            self._try_later(job, now)
        elif replica.is_serving and not config.is_joint:
            self._change(job, replica)

    def _change(self, job: _Job, replica: GroupReplica) -> None:
        group = replica.group
        if group.committed != group.shape.last:
            job.why = "what was appended is not committed yet"
            return
        try:
            change = partial(Group.change_config, voters=job.target, version=job.wish.at)
            replica.tell(change)
        except RequestError as error:
            job.why = error.message or str(error)  # they have not caught up: the next look tries

    def _try_later(self, job: _Job, now: float) -> None:
        timing = self._timing
        job.not_before = now + min(timing.again_s * 2**job.failures, timing.again_max_s)
        job.failures += 1

    def _resume(self, job: _Job) -> None:
        if job.paused is not None:
            job.paused.resume_writes()
            job.paused = None
            self._pauses.append(self._now - job.paused_at)

    def _idle(self, job: _Job) -> None:
        """It is not led here, or not yet."""
        self._resume(job)
        job.stage, job.why, job.learner = Stage.WAIT, "", None


def may_be_wished_later(replica: GroupReplica, version: int) -> bool:
    """Whether its voters are of a wish that comes after that version of the metadata.

    Who has applied no more has yet to hear of that wish: by what it knows the replica is not its
    own any more, and by that wish it may be, with records that nobody else has.
    """
    return replica.group.config.version >= version


def _begin_with(group: Group, node: NodeId) -> None:
    """Nothing goes out before it is allowed."""
    group.add_learner(node)
    group.allow(node, 0)
