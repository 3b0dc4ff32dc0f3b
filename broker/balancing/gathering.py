"""The cluster at one moment, as the balancer wants to see it.

Who lives and who leads is what this broker knows itself; loads and lags are what the leaders have
told; the rest are the metadata. What nobody has told is not guessed: a follower of which nothing is
known is out of sync, and a partition of which nothing is known stays where it is.

A partition is looked at when something of it may have changed (`changes.py`), so that a look costs
what has happened since the last one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Final, NamedTuple
from uuid import UUID

import trio

from tidemark.broker.balancing.changes import Changes, NewLeaders
from tidemark.broker.balancing.history import History
from tidemark.broker.balancing.own_loads import UNKNOWN_LAG
from tidemark.broker.balancing.rates import Rate, Rates
from tidemark.broker.balancing.reports import Reports
from tidemark.broker.metadata.brokers import Brokers, Quorum
from tidemark.broker.metadata.cluster_log import CLUSTER_KEY
from tidemark.partitions.balancing.snapshot import Broker, BrokerState, Group, Snapshot
from tidemark.partitions.state_machines import cluster_values
from tidemark.partitions.state_machines.cluster import ClusterState
from tidemark.partitions.state_machines.cluster_machine import CLUSTER_TOPIC
from tidemark.partitions.state_machines.cluster_values import (
    Assignment,
    LeaderMove,
    PartitionId,
    TopicMetadata,
)
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.messages.peer.load_report import GroupLoad, VoterLag
from tidemark.protocol.types import NodeId, TopicPartition

_AT_ONCE: Final = 200
_PATIENCE_SECONDS: Final = 5.0
_LOOK_SECONDS: Final = 0.2
METADATA: Final = TopicPartition(CLUSTER_TOPIC, CLUSTER_KEY.partition)
_STATES: Final = {
    cluster_values.BrokerState.ACTIVE: BrokerState.ACTIVE,
    cluster_values.BrokerState.DRAINING: BrokerState.DRAINING,
    cluster_values.BrokerState.DECOMMISSIONING: BrokerState.DECOMMISSIONING,
}


class _Seen(NamedTuple):
    """All that is known of a partition."""

    assigned: Assignment
    wanted: Assignment | None
    observers: Assignment
    leader: NodeId | None
    load: GroupLoad | None
    rate: Rate
    move: LeaderMove | None
    moved_ms: int | None


class _Made(NamedTuple):
    seen: _Seen
    group: Group
    is_heard: bool
    """Whether its leader, if there is one, has told of it."""


class Gathering:
    """Makes snapshots. Used on the loop's thread."""

    def __init__(
        self,
        state: Callable[[], ClusterState],
        brokers: Brokers,
        reports: Reports,
        history: History,
        leaders: NewLeaders,
    ) -> None:
        self._state = state
        self._brokers = brokers
        self._reports = reports
        self._history = history
        self._rates = Rates()
        self._changes = Changes(state, brokers, reports, leaders)
        self._unheard = 0
        self._groups: list[Group] = []
        self._leaders: Counter[NodeId | None] = Counter()
        self._made: dict[PartitionKey, _Made] = {}
        self._is_outdated = False
        """Whether `_made` has changed since the groups were taken from it: also by a look that was
        cut short after it had seen the last change."""
        self._one_at_a_time = trio.Lock()

    async def gather_all(self) -> Snapshot:
        """The same, once all leaders have told what they lead and all brokers how their disks are,
        or a few seconds have passed: soon after the lead of the metadata, or of partitions, has
        changed."""
        return await self._gather_until(lambda found: not self._unheard and _have_all_told(found))

    async def gather_told(self) -> Snapshot:
        """The same, but for partitions whose lead has changed a moment ago: for who looks again and
        again while leaders move."""
        return await self._gather_until(_have_all_told)

    async def _gather_until(self, is_enough: Callable[[Snapshot], bool]) -> Snapshot:
        snapshot = await self.gather()
        with trio.move_on_after(_PATIENCE_SECONDS):
            while not is_enough(snapshot):
                await trio.sleep(_LOOK_SECONDS)
                snapshot = await self.gather()
        return snapshot

    async def gather(self) -> Snapshot:
        """Takes its time where thousands of partitions have changed: others are served meanwhile,
        and what changes by then is noticed when something is to be done about it. Cancelled, it
        goes on the next time."""
        now_ms = now()
        async with self._one_at_a_time:
            gone = self._changes.note(now_ms)
            if gone:
                self._forget(gone)
            self._reports.forget_gone(self._changes.topics.__contains__)
            for key in self._rates.settled(now_ms):
                self._changes.add(key)
            self._is_outdated |= bool(gone or self._changes)
            if self._is_outdated:
                await self._look_again(now_ms)
            groups, brokers = self._groups, self._members(now_ms)
        return Snapshot(now_ms=now_ms, brokers=brokers, groups=groups)

    def moved(self, at: PartitionId) -> None:
        """What `History` knows of a partition has changed."""
        self._changes.add(PartitionKey(*at))

    def stop(self) -> None:
        """Nobody will ask for a while."""
        self._changes.stop()
        self._rates.clear()

    async def _look_again(self, now_ms: int) -> None:
        looked = 0
        while self._changes:
            key = self._changes.next()
            self._made[key] = self._look_at(key, self._changes.topics[key.topic_id], now_ms)
            self._changes.seen(key)
            looked += 1
            if looked % _AT_ONCE == 0:
                await trio.lowlevel.checkpoint()
        self._groups = [made.group for made in self._made.values()]
        self._leaders = Counter(group.leader for group in self._groups)
        self._unheard = sum(not made.is_heard for made in self._made.values())
        self._is_outdated = False

    def _forget(self, topics: Collection[UUID]) -> None:
        self._made = {key: made for key, made in self._made.items() if key.topic_id not in topics}
        self._reports.forget_topics(topics)
        self._history.forget_topics(topics)
        self._rates.forget_topics(topics)

    def _members(self, now_ms: int) -> list[Broker]:
        """The brokers; those that lead nothing any more are drained."""
        state, leaders = self._state(), self._leaders
        return [
            self._broker(
                node, broker.rack, _STATES[state.wishes.broker_state(node)], leaders[node], now_ms
            )
            for node, broker in state.brokers.items()
        ]

    def with_states_of(self, snapshot: Snapshot, state: ClusterState) -> Snapshot:
        """The same with what is wanted of the brokers by now."""
        brokers = [
            replace(each, state=_STATES[state.wishes.broker_state(each.node_id)])
            for each in snapshot.brokers
        ]
        return replace(snapshot, brokers=brokers)

    def is_full(self, node: NodeId) -> bool:
        """Whether its disk takes no records, as far as it has said."""
        disk = self._reports.disk(node)
        return disk is not None and disk.is_full

    def _broker(
        self, node: NodeId, rack: str | None, state: BrokerState, leaders: int, now_ms: int
    ) -> Broker:
        if state is BrokerState.DRAINING and not leaders:
            state = BrokerState.DRAINED
        since_ms, disk = self._history.up_since_ms(node), self._reports.disk(node)
        return Broker(
            node_id=node,
            rack=rack,
            state=state,
            is_alive=self._brokers.is_alive(node),
            is_full=disk is not None and disk.is_full,
            disk_since_ms=None if disk is None else disk.since_ms,
            has_told=disk is not None,
            up_since_ms=now_ms if since_ms is None else since_ms,
        )

    def _look_at(self, key: PartitionKey, topic: TopicMetadata, now_ms: int) -> _Made:
        """A partition; the same value as the last time where nothing has changed, which is what
        makes idle ones cheap."""
        at = PartitionId(topic.id, key.partition)
        leader, epoch = self._brokers.leader_of(key)
        self._history.saw_leader(at, leader, now_ms)
        load = None if leader is None else self._reports.load(key, leader, epoch)
        seen = _Seen(
            topic.assignments[key.partition],
            topic.wanted.get(key.partition),
            topic.observers.get(key.partition, ()),
            leader,
            load,
            self._rates.look(key, load, now_ms),
            self._state().wishes.moves.get(at),
            self._history.moved_ms(at),
        )
        made = self._made.get(key)
        if made is not None and made.seen == seen:
            return made
        partition = TopicPartition(topic.name, key.partition)
        return _Made(seen, _group(partition, seen), leader is None or seen.load is not None)

    def metadata_group(self) -> Group | None:
        """The metadata's own group; None if it is not led here."""
        quorum = self._brokers.quorum(CLUSTER_KEY)
        return None if quorum is None else _of_quorum(quorum, self._brokers)


def _have_all_told(snapshot: Snapshot) -> bool:
    return all(broker.has_told for broker in snapshot.brokers if broker.is_alive)


def _group(partition: TopicPartition, seen: _Seen) -> Group:
    leader, move, load = seen.leader, seen.move, seen.load
    group = Group(
        partition=partition,
        replicas=seen.wanted or seen.assigned,
        leader=leader,
        voters=seen.assigned,
        observers=seen.observers,
        bytes_in_per_second=seen.rate.taken,
        bytes_out_per_second=seen.rate.given,
        moved_ms=seen.moved_ms,
        moving_to=None if move is None or move.target == leader else move.target,
        is_changing=seen.wanted is not None,
    )
    if load is None:
        return group
    voters, lags = _voters_and_lags(tuple(load.voters), leader)
    return group._replace(
        voters=voters,
        lags=lags,
        learners=tuple(map(NodeId, load.learners)),
        size_bytes=load.size_bytes,
        is_changing=group.is_changing or load.is_changing,
    )


@lru_cache(maxsize=4096)
def _voters_and_lags(
    voters: tuple[VoterLag, ...], leader: NodeId | None
) -> tuple[tuple[NodeId, ...], Mapping[NodeId, int]]:
    """One value for all groups that look alike: of thousands nearly all do."""
    return tuple(NodeId(each.node_id) for each in voters), {
        NodeId(each.node_id): each.lag
        for each in voters
        if each.lag != UNKNOWN_LAG and each.node_id != leader
    }


def _of_quorum(quorum: Quorum, brokers: Brokers) -> Group:
    voters = tuple(each.node_id for each in quorum.voters)
    return Group(
        partition=METADATA,
        replicas=voters,
        leader=brokers.node_id,
        voters=voters,
        lags=dict(_lags(quorum, brokers)),
    )


def _lags(quorum: Quorum, brokers: Brokers) -> Iterator[tuple[NodeId, int]]:
    end = max(each.end_offset for each in quorum.voters)
    for each in quorum.voters:
        if each.end_offset >= 0 and brokers.is_alive(each.node_id):
            yield each.node_id, max(0, end - each.end_offset)


def now() -> int:
    """Milliseconds of this process's own clock."""
    return int(trio.current_time() * 1000)
