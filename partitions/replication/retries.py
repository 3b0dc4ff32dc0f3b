"""Replication that has stopped in the middle: what was sent may never have arrived.

A transport that loses only with its connection needs none of this. The simulator's loses anything,
and a peer drops what it has no room for. Groups are looked at only while something is in flight.
"""

from __future__ import annotations

from functools import partial
from heapq import heappop, heappush
from itertools import count

from tidemark.partitions.raft.group import Group
from tidemark.partitions.replication.group_replica import GroupReplica
from tidemark.partitions.replication.peer_table import PeerTable
from tidemark.partitions.replication.timing import Timing
from tidemark.protocol.types import NodeId
from tidemark.protocol.values import dataclass


@dataclass(slots=True)
class _Watch:
    wait_seconds: float
    since: float
    """When it last moved, or was begun again: most of what is in flight was sent by then."""
    progress: dict[NodeId, int]
    successor: NodeId | None


class Retries:
    """Looks at groups with something in flight, less and less often while nothing moves."""

    def __init__(self, timing: Timing, peers: PeerTable) -> None:
        self._timing = timing
        self._peers = peers
        self._watched: dict[GroupReplica, _Watch] = {}
        self._heap: list[tuple[float, int, GroupReplica]] = []
        self._numbers = count()

    def __contains__(self, replica: GroupReplica) -> bool:
        return replica in self._watched

    def watch(self, replica: GroupReplica, now: float) -> None:
        """Something of the group is in flight."""
        if replica not in self._watched:
            self._watch(replica, now, self._timing.retry_seconds)

    def _watch(self, replica: GroupReplica, now: float, wait_seconds: float) -> None:
        group = replica.group
        watch = _Watch(wait_seconds, now, progress_of(group), group.successor)
        self._watched[replica] = watch
        heappush(self._heap, (now + wait_seconds, next(self._numbers), replica))

    def watch_later(self, replica: GroupReplica, now: float) -> None:
        """Something of the group is to be sent to a replica that says when it is there; should
        that be lost, it is sent after the longest wait."""
        if replica not in self._watched:
            self._watch(replica, now, self._timing.retry_max_seconds)

    def next_deadline(self) -> float:
        return self._heap[0][0] if self._heap else float("inf")

    def tick(self, now: float) -> None:
        """Begin again what has made no progress since it was last looked at."""
        while self._heap and self._heap[0][0] <= now:
            _, _, replica = heappop(self._heap)
            watch = self._watched[replica]
            if needs_watch(replica):
                self._look(replica, watch, now)
                heappush(self._heap, (now + watch.wait_seconds, next(self._numbers), replica))
            else:
                del self._watched[replica]
        if not self._watched:
            self._watched = {}  # the table of one that has held thousands stays that large

    def _look(self, replica: GroupReplica, watch: _Watch, now: float) -> None:
        progress, is_stuck = progress_of(replica.group), False
        waits_for = replica.group.waits_for()
        for node, made in progress.items():
            is_still = node in waits_for and watch.progress.get(node) == made
            # One that has not come to read it would only have the more to read.
            if is_still and self._peers.is_alive(node) and self._peers.has_read(node, watch.since):
                is_stuck = True
                replica.tell(partial(reset_peer, node=node))
        successor = replica.group.successor
        if successor is not None and successor == watch.successor:
            replica.tell(Group.abort_hand_over)
        watch.successor = successor
        replica.tell(Group.check_quorum)
        longer = min(2 * watch.wait_seconds, self._timing.retry_max_seconds)
        watch.wait_seconds = longer if is_stuck else self._timing.retry_seconds
        if is_stuck or progress != watch.progress:
            watch.since = now
        watch.progress = progress


def needs_watch(replica: GroupReplica) -> bool:
    """Whether a leader waits for others: for entries to arrive, or a change to be finished."""
    group = replica.group
    return replica.is_leader and (
        group.has_in_flight or group.config.is_joint or group.successor is not None
    )


def progress_of(group: Group) -> dict[NodeId, int]:
    """What changes as a follower takes something in."""
    return {progress.node: progress.answers for progress in group.progress()}


def restart_peer(group: Group, *, node: NodeId) -> None:
    """Forget what was in flight to its last process; the next one asks for what it lacks."""
    group.peer_restarted(node)


def reset_peer(group: Group, *, node: NodeId) -> None:
    """Forget what is in flight to `node`, and send again what it has not confirmed."""
    group.peer_reset(node)
