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

from typing import Protocol

from tidemark.broker.metadata.brokers import Brokers
from tidemark.broker.metadata.topic import Topic
from tidemark.partitions.state_machines.cluster_values import Assignment
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.types import Epoch, NodeId
from tidemark.protocol.values import dataclass


class LocalReplica(Protocol):
    """The replica on this broker."""

    @property
    def is_available(self) -> bool: ...

    @property
    def epoch(self) -> Epoch: ...


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


def partition_view(brokers: Brokers, topic: Topic, partition: int) -> PartitionView:
    """Look at one partition of a topic."""
    holders = topic.metadata.replicas(partition)
    replicas = (*holders, *topic.metadata.observers.get(partition, ()))
    replica = topic.replica(partition)
    leader, epoch = brokers.leader_of(PartitionKey(topic.id, partition))
    if replica is not None:
        epoch = max(epoch, replica.epoch)
    if leader == brokers.node_id and (replica is None or not replica.is_available):
        leader = None
    offline = tuple(node for node in replicas if not _is_online(brokers, replica, node))
    if leader == brokers.node_id:
        lagging = brokers.lagging(PartitionKey(topic.id, partition), holders)
    else:
        lagging = {*holders} - {*topic.metadata.assignments[partition]}
    return PartitionView(
        partition=partition,
        leader=leader,
        epoch=epoch,
        replicas=replicas,
        in_sync=tuple(node for node in holders if node not in offline and node not in lagging),
        offline=offline,
    )


def _is_online(brokers: Brokers, replica: LocalReplica | None, node: NodeId) -> bool:
    if node == brokers.node_id:
        return replica is not None and replica.is_available
    return brokers.is_alive(node)
