"""Observers as the metadata name them: told to the groups on this broker.

Every broker tells its groups who observes them, so that whoever leads keeps its observers informed,
and pulls for the partitions that it observes itself.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import trio

from tidemark.broker.looks import next_look
from tidemark.broker.network.turn import Turn
from tidemark.partitions.raft.observer import Observer
from tidemark.partitions.replication.group_replica import GroupReplica
from tidemark.partitions.replication.node import ReplicationNode
from tidemark.partitions.replication.observer_tree import parents_of
from tidemark.partitions.state_machines.cluster import ClusterState
from tidemark.partitions.state_machines.cluster_values import Assignment, TopicMetadata
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.types import NodeId
from tidemark.protocol.values import dataclass

LOOK_SECONDS: Final = 0.5
_SETTLE_SECONDS: Final = 0.05
"""While a replica that is to observe is being opened."""


@dataclass(frozen=True, slots=True)
class _Told:
    """What a replica here was told last."""

    replica: GroupReplica
    observers: Assignment
    parents: tuple[NodeId, ...]


class Observing:
    """Of all replicas on this broker. Used on the loop's thread."""

    def __init__(self, node: ReplicationNode, state: Callable[[], ClusterState]) -> None:
        self._node = node
        self._state = state
        self._told: dict[PartitionKey, _Told] = {}
        self.has_told = False
        """Whether the last look told any group anything, which is to be sent or written then."""

    def observes(self, key: PartitionKey) -> bool:
        """Whether the metadata say that this broker observes that partition."""
        topic = self._state().topic_by_id(key.topic_id)
        return topic is not None and self._node.node_id in topic.observers.get(key.partition, ())

    def look(self) -> bool:
        """Tell the groups here, in a turn; whether all that are to observe have been told."""
        state, before, self._told = self._state(), self._told, {}
        is_settled, self.has_told = True, False
        for topic in state.topics.values():
            for partition, observers in topic.observers.items():
                key = PartitionKey(topic.id, partition)
                replica = self._node.get(key)
                if replica is not None:
                    self._told[key] = self._tell(state, topic, replica, before.get(key))
                elif self._node.node_id in observers:
                    is_settled = False
        for key in before.keys() - self._told.keys():
            self._node.set_observers(key, ())
            self.has_told = True
        return is_settled

    def _tell(
        self, state: ClusterState, topic: TopicMetadata, replica: GroupReplica, before: _Told | None
    ) -> _Told:
        key, me = replica.key, self._node.node_id
        observers, voters = topic.observers[key.partition], topic.assignments[key.partition]
        parents: tuple[NodeId, ...] = ()
        if me in observers:

            def rack_of(node: NodeId) -> str | None:
                broker = state.brokers.get(node)
                return None if broker is None else broker.rack

            parents = parents_of(me, voters=voters, observers=observers, rack_of=rack_of)
        told = _Told(replica, observers, parents)
        if before is None or before.observers != observers:
            self._node.set_observers(key, observers)
            self.has_told = True
        pulls = isinstance(replica.group.role, Observer)
        if parents and not replica.group.is_voter and (told != before or not pulls):
            self._node.observe(key, voters, preferred=parents, is_told=True)
            self.has_told = True
        return told


async def keep_observing(
    observing: Observing,
    *,
    turn: Turn,
    touch: Callable[[], None],
    wait_more: Callable[[], Awaitable[None]],
) -> None:
    """Tell the groups here who observes them, again and again, as long as this runs.

    `wait_more` waits until the metadata have changed.
    """
    settled: list[bool] = []

    def look() -> None:
        settled[:] = [observing.look()]
        if observing.has_told:
            touch()

    while True:
        turn.run(look)
        with trio.move_on_at(next_look(LOOK_SECONDS if settled[0] else _SETTLE_SECONDS)):
            await wait_more()
