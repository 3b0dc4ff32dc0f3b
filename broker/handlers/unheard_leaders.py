"""Clients of a broker that does not hear all others are told what those that it does hear know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tidemark.broker.replicas.leadership import NOBODY
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.messages.metadata import MetadataResponsePartition, MetadataResponseTopic
from tidemark.protocol.types import Epoch, NodeId, TopicPartition

if TYPE_CHECKING:
    from tidemark.broker.leaders_elsewhere import LeadersElsewhere
    from tidemark.broker.node import Node


def lacks_leader(topic: MetadataResponseTopic) -> bool:
    return any(each.leader_id == NOBODY for each in topic.partitions)


async def ask_for_unheard(node: Node, topics: Sequence[MetadataResponseTopic]) -> LeadersElsewhere:
    """What others know of leaders of these topics, and of the metadata, that are not known here."""
    elsewhere = _elsewhere(node)
    lacking = [topic.name for topic in topics if topic.name is not None and lacks_leader(topic)]
    if lacking or node.brokers.controller is None:
        await elsewhere.ask(lacking)
    return elsewhere


async def leader_of(node: Node, partition: TopicPartition) -> NodeId | None:
    """Who leads a partition that has no leader as far as is known here."""
    topic = node.topics.get(partition.topic)
    if topic is None or node.brokers.hears_all:
        return None
    elsewhere = _elsewhere(node)
    await elsewhere.ask([partition.topic])
    known = elsewhere.leader_of(PartitionKey(topic.id, partition.partition))
    return None if known is None else known[0]


def with_leaders(
    topic: MetadataResponseTopic, elsewhere: LeadersElsewhere
) -> MetadataResponseTopic:
    """The topic, with leaders that others know where none is known here."""

    def filled(partition: MetadataResponsePartition) -> MetadataResponsePartition:
        known = elsewhere.leader_of(PartitionKey(topic.topic_id, partition.partition_index))
        if known is None or partition.leader_id != NOBODY:
            return partition
        return _led(partition, *known)

    if not lacks_leader(topic):
        return topic
    return replace(topic, partitions=list(map(filled, topic.partitions)))


def _led(
    partition: MetadataResponsePartition, leader: NodeId, epoch: Epoch
) -> MetadataResponsePartition:
    if epoch < partition.leader_epoch:
        return partition
    in_sync = partition.isr_nodes
    return replace(
        partition,
        error_code=ErrorCode.NONE,
        leader_id=leader,
        leader_epoch=epoch,
        isr_nodes=in_sync if leader in in_sync else (*in_sync, leader),
        offline_replicas=[each for each in partition.offline_replicas if each != leader],
    )


def _elsewhere(node: Node) -> LeadersElsewhere:
    if node.leaders_elsewhere is None:
        from tidemark.broker.leaders_elsewhere import LeadersElsewhere

        node.leaders_elsewhere = LeadersElsewhere(node.brokers, node.calls)
    return node.leaders_elsewhere
