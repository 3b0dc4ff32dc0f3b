"""Groups whose replicas are to be on other brokers, as far as they are led here: whose turn it is.

What is wished comes from the cluster's metadata, and every broker has all of it; the leader of a
group carries it out (`reassignment.py`). A few groups are worked on at a time, those that have
begun before others, and all learners together are sent a number of bytes per second that holds for
the whole broker. What has come true the metadata's leader strikes, and only then do the brokers
that left give up what they hold.

Nothing of it is durable here: whoever leads next finds the wish, and the group as it is. A wish is
cancelled by another one, for the voters that the group had.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from tidemark.partitions.raft.group import Group
from tidemark.partitions.replication.copy_meter import CopyMeter
from tidemark.partitions.replication.group_replica import GroupReplica
from tidemark.partitions.replication.node import ReplicationNode
from tidemark.partitions.replication.reassignment import Reassignment
from tidemark.partitions.replication.reassignment_values import (
    NO_LIMIT,
    ReassignmentState,
    ReassignmentTiming,
    ReplicaWish,
    Stage,
)
from tidemark.partitions.replication.throttles import UNLIMITED, Copy, CopyLimits, Throttle
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.types import NodeId

__all__ = [
    "NO_LIMIT",
    "ReassignmentState",
    "ReassignmentTiming",
    "Reassignments",
    "ReplicaWish",
    "Stage",
    "may_be_wished_later",
]


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
        self._jobs: dict[PartitionKey, Reassignment] = {}
        self._looked_at: float | None = None
        self._now = 0.0
        self._pauses: list[float] = []
        self._waiting_from = 0
        self.bytes_per_second = bytes_per_second
        """What all learners of this broker's groups are sent together, at most."""
        self.throttles: Sequence[Throttle] = ()
        """What some of them are."""
        self._limits = CopyLimits()
        self._parts: dict[Copy, float] = {}
        """Of a byte, which each may be sent beside what it was allowed."""
        self.bytes_sent = 0
        """To learners, in all."""

    def __bool__(self) -> bool:
        return bool(self._jobs)

    # What is wished

    def wish(self, key: PartitionKey, wish: ReplicaWish) -> None:
        """The group is to be on these brokers; in place of an earlier wish, if there was one."""
        job = self._jobs.get(key)
        if job is not None and job.wish == wish:
            return
        meter = CopyMeter() if job is None else job.meter
        if job is not None:
            job.release(self._now)
        self._jobs[key] = Reassignment(wish, self._node, self._timing, self._note_pause, meter)

    def _note_pause(self, seconds: float) -> None:
        self._pauses.append(seconds)

    def strike(self, key: PartitionKey) -> None:
        """Nothing is wished of the group any more: whoever has no vote is sent nothing more."""
        job = self._jobs.pop(key, None)
        replica = self._node.get(key)
        if job is None:
            return
        job.release(self._now)
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
        return job.state()

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
        return any(job.is_holding for job in self._jobs.values())

    # Doing it

    def look(self, now: float) -> None:
        """Do the next thing that can be done for each; in a turn."""
        self._now = now
        elapsed = 0.0 if self._looked_at is None else now - self._looked_at
        self._looked_at = now
        room = self._timing.copies_max
        copying: list[tuple[GroupReplica, NodeId]] = []
        limits = self._all_limits()
        # Those that have begun go on, before others begin.
        begun = [item for item in self._jobs.items() if item[1].is_under_way]
        for key, job in (*begun, *self._next_waiting()):
            replica = self._node.get(key)
            if replica is None or replica.failure is not None:
                job.idle(now)
                continue
            if job.is_holding:
                job.look_at_held(replica, now)
            elif room > 0 or job.stage is Stage.DONE:
                job.look(replica, now)
            if job.stage not in (Stage.WAIT, Stage.DONE) and not job.is_stuck:
                room -= 1
            self.bytes_sent += job.measure(replica, now)
            for learner, size_bytes in job.near.take_let_through().items():
                self._limits.let_through(Copy(key, learner), size_bytes, limits)
            if job.stage is Stage.COPY and replica.is_leader and job.learner is not None:
                copying.append((replica, job.learner))
        self._allow(copying, limits, elapsed)

    def _next_waiting(self) -> list[tuple[PartitionKey, Reassignment]]:
        """Some of those that wait for their turn, or in whose way something stands: there may be
        thousands, and each is looked at now and then."""
        waiting = [item for item in self._jobs.items() if not item[1].is_under_way]
        most = self._timing.waiting_looked_at_max
        if len(waiting) <= most:
            return waiting
        first = self._waiting_from % len(waiting)
        self._waiting_from = first + most
        return (waiting + waiting)[first : first + most]

    def _all_limits(self) -> Sequence[Throttle]:
        if self.bytes_per_second == NO_LIMIT:
            return self.throttles
        return (Throttle(self.bytes_per_second, None), *self.throttles)

    def _allow(
        self,
        copying: list[tuple[GroupReplica, NodeId]],
        limits: Sequence[Throttle],
        elapsed: float,
    ) -> None:
        """Each that is being copied gets its part of what this broker may send by now."""
        copies = [Copy(replica.key, learner) for replica, learner in copying]
        shares = self._limits.shares(
            copies, limits, elapsed=elapsed, elapsed_max=self._timing.refill_max_seconds
        )
        # Else a limit that comes to less than a byte each time would hold them back for ever.
        before, self._parts = self._parts, {}
        for (replica, learner), copy, share in zip(copying, copies, shares, strict=True):
            more = None
            if share != UNLIMITED:
                share += before.get(copy, 0.0)
                more = int(share)
                self._parts[copy] = share - more
            replica.tell(partial(Group.allow, node=learner, more_bytes=more))


def may_be_wished_later(replica: GroupReplica, version: int) -> bool:
    """Whether its voters are of a wish that comes after that version of the metadata.

    Who has applied no more has yet to hear of that wish: by what it knows the replica is not its
    own any more, and by that wish it may be, with records that nobody else has.
    """
    return replica.group.config.version >= version
