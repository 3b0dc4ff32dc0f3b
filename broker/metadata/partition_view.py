"""Where a partition is and how it does, as far as this broker knows: what clients are told of it.

The assignment comes from the metadata, and is the same everywhere. Who leads comes from heartbeats,
and may be a moment old. Who is *in sync* only the leader knows for certain: there it is whose
broker lives and holds all that is committed. Any other broker takes who lives for in sync, which a
replica that has just come back is not yet; but not those to which it is only being moved.

While replicas move, all that hold it or are to are shown, as Kafka does: those that are wanted
first, then those that are to leave.

Observers are shown as replicas, for a client follows its leader's word to read from a replica only
if that is one of those it was told of (Java's does). They are never in sync: nothing that is
acknowledged has waited for them, and none of them can lead.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import cache
from typing import Final

from tidemark.broker.metadata.brokers import Brokers
from tidemark.broker.metadata.topic import Topic
from tidemark.partitions.state_machines.cluster_values import Assignment
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.types import Epoch, NodeId
from tidemark.protocol.values import dataclass, maker_of


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionView:
    """One partition, as it is shown."""

    partition: int
    leader: NodeId | None
    """`None`: nobody living that is known, or that could serve."""
    epoch: Epoch
    replicas: Assignment
    in_sync: tuple[NodeId, ...]
    offline: tuple[NodeId, ...]


_made_view: Final = maker_of(PartitionView)


def partition_view(brokers: Brokers, topic: Topic, partition: int) -> PartitionView:
    """Look at one partition of a topic."""
    return _view(brokers, brokers.is_alive, topic, partition)


def partition_views(
    brokers: Brokers, topic: Topic, partitions: Iterable[int]
) -> list[PartitionView]:
    """Look at these of a topic: when leaders have died, every client asks for all of them."""
    is_alive = cache(brokers.is_alive)
    return [_view(brokers, is_alive, topic, each) for each in partitions]


def _view(
    brokers: Brokers, is_alive: Callable[[NodeId], bool], topic: Topic, partition: int
) -> PartitionView:
    metadata, replica = topic.metadata, topic.replica(partition)
    holders, assigned = metadata.replicas(partition), metadata.assignments[partition]
    replicas = holders
    if partition in metadata.observers:
        replicas = (*holders, *metadata.observers[partition])
    key = PartitionKey(metadata.id, partition) if replica is None else replica.key
    leader, epoch = brokers.leader_of(key)
    if replica is not None:
        epoch = max(epoch, replica.epoch)
    is_here = replica is not None and replica.is_available
    me = brokers.node_id
    offline = tuple([node for node in replicas if not (is_here if node == me else is_alive(node))])
    if leader == me and not is_here:
        leader = None
    behind: Collection[NodeId] = ()
    if leader == me:
        behind = brokers.lagging(key, holders)
    elif holders is not assigned:
        behind = {*holders} - {*assigned}
    in_sync = holders
    if offline or behind:
        in_sync = tuple(each for each in holders if each not in offline and each not in behind)
    return _made_view(
        partition=partition,
        leader=leader,
        epoch=epoch,
        replicas=replicas,
        in_sync=in_sync,
        offline=offline,
    )
