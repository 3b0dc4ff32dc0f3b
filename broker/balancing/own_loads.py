"""What this broker leads: its traffic, its size, and how far the followers are.

Looked at every few seconds, for all that is led here, so it has to be cheap. A partition to which
nothing has happened since the last look, and whose followers had everything, is passed over; and
where nothing has happened to any, none is looked at. One whose traffic is known, and whose
followers have everything, is looked at every few looks: a thousand that are written are not all
measured anew each second.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

import trio

from tidemark.broker.balancing.traffic import Smoothed
from tidemark.broker.metadata.brokers import Brokers
from tidemark.broker.metadata.topic import Topic
from tidemark.broker.replicas.replica import Replica
from tidemark.partitions.raft.group import Group
from tidemark.partitions.raft.progress import NodeProgress
from tidemark.partitions.raft.replica import NOWHERE
from tidemark.partitions.replication.group_replica import GroupReplica
from tidemark.protocol.messages.peer.load_report import GroupLoad, VoterLag
from tidemark.protocol.types import NodeId, Offset
from tidemark.protocol.values import dataclass

UNKNOWN_LAG: Final = -1
_AT_ONCE: Final = 200
_QUIET_PER_SECOND: Final = 1.0
_IDLE_SECONDS: Final = 60.0
"""So often all are looked at, whatever has happened: for what is not counted as activity."""
_STEADY_LOOKS: Final = 4
"""Every so many looks one with traffic is measured, some at each. It is smoothed over many more."""
_LOOK_SECONDS: Final = 1.0
"""Between two looks while there is traffic (`reports.REPORT_SECONDS`)."""
_NEARLY_NOTHING: Final = 64
"""Records that are on their way at any moment while somebody produces."""


@dataclass(slots=True)
class _Watched:
    at: float
    epoch: int
    taken: Smoothed
    given: Smoothed
    load: GroupLoad
    end: Offset
    bytes_out: int
    alive: frozenset[NodeId]
    is_still: bool
    """Whether it changes by nothing but new records, readers, or brokers that come and go."""
    due: float
    """When it is to be measured again; before, if another leads, or brokers have come or gone."""


def _is_in_order(load: GroupLoad) -> bool:
    return not load.is_changing and all(each.lag == 0 for each in load.voters)


def _has_traffic(load: GroupLoad) -> bool:
    return bool(load.bytes_in_per_second or load.bytes_out_per_second)


def _due(load: GroupLoad, before: _Watched | None, now: float) -> float:
    """When a partition is to be measured again that was just found to be so."""
    if not (_has_traffic(load) and _is_in_order(load)):
        return now
    is_first = before is None or before.due <= before.at
    looks = 1 + load.partition % _STEADY_LOOKS if is_first else _STEADY_LOOKS
    return now + (looks - 0.5) * _LOOK_SECONDS


class _Idle(NamedTuple):
    """A look that found nothing going on."""

    loads: list[GroupLoad]
    activity: object
    at: float

    def holds(self, activity: object, now: float) -> bool:
        return self.activity == activity and now < self.at + _IDLE_SECONDS


class OwnLoads:
    """Used on the loop's thread."""

    def __init__(self, node_id: NodeId, activity: Callable[[], object]) -> None:
        """`activity` answers something else after records were written, read or replicated here,
        or a leader has changed."""
        self._node_id = node_id
        self._activity = activity
        self._idle: _Idle | None = None
        # By the replica itself: its key takes longer to look up than all else that is looked at.
        self._watched: dict[Replica, _Watched] = {}

    def look(self, replica: Replica, alive: frozenset[NodeId], now: float) -> GroupLoad | None:
        """The load of a partition that is led here; `alive` are the brokers that can be heard."""
        if not replica.is_serving:
            self._watched.pop(replica, None)
            return None
        member = replica.member
        watched = self._watched.get(replica)
        if watched is not None and watched.epoch != member.epoch:
            watched = None
        if watched is not None and watched.alive == alive:
            if now < watched.due:
                return watched.load
            if (
                watched.is_still
                and watched.end == member.log_end
                and watched.bytes_out == replica.bytes_out
            ):
                return watched.load
        given = replica.bytes_out
        size = replica.size_bytes
        if watched is None:
            taken, out = Smoothed(size, now), Smoothed(given, now)
        else:
            taken, out = watched.taken, watched.given
            taken.sample(size, now)
            out.sample(given, now)
        load = _load(member, self._node_id, alive, size, taken.per_second, out.per_second)
        self._watched[replica] = _Watched(
            now,
            member.epoch,
            taken,
            out,
            load,
            member.log_end,
            given,
            alive,
            _is_in_order(load) and not _has_traffic(load),
            _due(load, watched, now),
        )
        return load

    async def look_at_all(self, topics: Iterable[Topic], brokers: Brokers) -> list[GroupLoad]:
        """What is led here, some hundreds at a time: others are served meanwhile."""
        alive = frozenset(node for node in brokers.registered if brokers.is_alive(node))
        at, activity = trio.current_time(), (self._activity(), alive)
        if self._idle is not None and self._idle.holds(activity, at):
            return self._idle.loads
        loads, led = [], set()
        replicas = [replica for topic in topics for replica in topic.replicas]
        for number, replica in enumerate(replicas, start=1):
            load = self.look(replica, alive, at)
            if load is not None:
                led.add(replica)
                loads.append(load)
            if number % _AT_ONCE == 0:
                await trio.lowlevel.checkpoint()
        self.keep_only(led)
        is_still = all(watched.is_still for watched in self._watched.values())
        self._idle = _Idle(loads, activity, at) if is_still else None
        return loads

    def keep_only(self, replicas: Collection[Replica]) -> None:
        """Forget all others: they were deleted, or moved away."""
        for replica in self._watched.keys() - replicas:
            del self._watched[replica]


def _load(
    member: GroupReplica,
    me: NodeId,
    alive: Collection[NodeId],
    size: int,
    taken: float,
    given: float,
) -> GroupLoad:
    group = member.group
    progress = group.progress()
    return GroupLoad(
        topic_id=member.key.topic_id,
        partition=member.key.partition,
        epoch=member.epoch,
        size_bytes=size,
        bytes_in_per_second=round(taken) if taken >= _QUIET_PER_SECOND else 0,
        bytes_out_per_second=round(given) if given >= _QUIET_PER_SECOND else 0,
        is_changing=group.config.is_joint,
        voters=_voters(group, progress, me, member.log_end, alive),
        learners=tuple([each.node for each in progress if not each.is_voter]),
    )


def _voters(
    group: Group,
    progress: Collection[NodeProgress],
    me: NodeId,
    end: Offset,
    alive: Collection[NodeId],
) -> tuple[VoterLag, ...]:
    if not progress and group.config.voters == (me,):
        return (voter_lag(me, 0),)
    behind = {each.node: end - each.match.offset for each in progress if _is_known(each)}
    return tuple(
        voter_lag(node, _lag(node, behind, alive) if node != me else 0)
        for node in group.config.voters
    )


@lru_cache(maxsize=4096)
def voter_lag(node: NodeId, lag: int) -> VoterLag:
    """One value for all groups: thousands are kept, nearly all of which say 0."""
    return VoterLag(node_id=node, lag=lag)


def _is_known(progress: NodeProgress) -> bool:
    return progress.match != NOWHERE


def _lag(node: NodeId, behind: Mapping[NodeId, int], alive: Collection[NodeId]) -> int:
    return rounded(behind[node]) if node in behind and node in alive else UNKNOWN_LAG


def rounded(lag: int) -> int:
    """Up to a power of two: it changes all the time, and is told when it does."""
    return 0 if lag < _NEARLY_NOTHING else 1 << (lag - 1).bit_length()
