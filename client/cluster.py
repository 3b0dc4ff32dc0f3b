"""What a cluster consists of, as its metadata says: a value, and how newer metadata changes it."""

import uuid
from collections.abc import Collection, Iterable, Mapping
from dataclasses import field, replace

from tidemark.client.codes import error_code
from tidemark.client.descriptions import (
    BrokerDescription,
    PartitionDescription,
    TopicDescription,
)
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.messages import metadata
from tidemark.protocol.types import Epoch, NodeId, TopicPartition
from tidemark.protocol.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterView:
    """Brokers and topics as last heard. Topics that were never asked for are not in it."""

    cluster_id: str | None = None
    controller_id: NodeId | None = None
    brokers: Mapping[NodeId, BrokerDescription] = field(default_factory=dict)
    topics: Mapping[str, TopicDescription] = field(default_factory=dict)
    errors: Mapping[str, ErrorCode] = field(default_factory=dict)
    """Why a topic that was asked for is not there."""

    @property
    def controller(self) -> BrokerDescription | None:
        """The broker to ask for changes; None while that is not known. One that is named and not
        listed is none: a broker that has just started may name it before it knows where it is."""
        return None if self.controller_id is None else self.brokers.get(self.controller_id)

    def partition(self, topic_partition: TopicPartition) -> PartitionDescription | None:
        topic = self.topics.get(topic_partition.topic)
        if topic is None or not 0 <= topic_partition.partition < len(topic.partitions):
            return None
        return topic.partitions[topic_partition.partition]

    def leader(self, topic_partition: TopicPartition) -> BrokerDescription | None:
        """The broker to ask about a partition; None while that is not known."""
        partition = self.partition(topic_partition)
        if partition is None or partition.leader is None:
            return None
        return self.brokers.get(partition.leader)

    def without(self, topic: str) -> "ClusterView":
        """This view as if the topic had never been asked for."""
        return replace(
            self,
            topics={name: value for name, value in self.topics.items() if name != topic},
            errors={name: value for name, value in self.errors.items() if name != topic},
        )

    def of(self, topics: Collection[str]) -> "ClusterView":
        """This view as if no other topics had ever been asked for."""
        topics = frozenset(topics)
        if self.topics.keys() <= topics and self.errors.keys() <= topics:
            return self
        return replace(
            self,
            topics={name: value for name, value in self.topics.items() if name in topics},
            errors={name: value for name, value in self.errors.items() if name in topics},
        )

    def partitions_of(self, topics: Iterable[str]) -> list[TopicPartition]:
        """All partitions of those of these topics that are known."""
        return [
            TopicPartition(name, partition.partition)
            for name in topics
            if (topic := self.topics.get(name)) is not None
            for partition in topic.partitions
        ]

    def led_by(
        self, topic_partition: TopicPartition, leader: BrokerDescription, epoch: Epoch
    ) -> "ClusterView":
        """This view after a broker has said who leads a partition instead of it (KIP-951).

        The same view if it is not news, or the partition is not known.
        """
        known, topic = self.partition(topic_partition), self.topics.get(topic_partition.topic)
        if topic is None or known is None or epoch <= known.leader_epoch:
            return self
        partitions = list(topic.partitions)
        partitions[known.partition] = replace(known, leader=leader.node_id, leader_epoch=epoch)
        return replace(
            self,
            brokers={leader.node_id: leader, **self.brokers},
            topics={**self.topics, topic.name: replace(topic, partitions=tuple(partitions))},
        )

    def updated(self, answer: metadata.MetadataResponse) -> "ClusterView":
        """This view after an answer, which replaces the brokers and the topics that it names.

        A partition with a smaller leader epoch than is known comes from a broker that lags behind,
        and is ignored, unless the topic id says that the topic has been made anew.
        """
        topics, errors = dict(self.topics), dict(self.errors)
        for entry in answer.topics:
            if entry.name is None:
                continue
            code = error_code(entry.error_code)
            if code is ErrorCode.NONE:
                topics[entry.name] = _topic(entry, topics.get(entry.name))
                errors.pop(entry.name, None)
            else:
                topics.pop(entry.name, None)
                errors[entry.name] = code
        return ClusterView(
            cluster_id=answer.cluster_id,
            controller_id=NodeId(answer.controller_id) if answer.controller_id >= 0 else None,
            brokers={broker.node_id: broker for broker in map(_broker, answer.brokers)},
            topics=topics,
            errors=errors,
        )


def _broker(entry: metadata.MetadataResponseBroker) -> BrokerDescription:
    return BrokerDescription(
        node_id=NodeId(entry.node_id), host=entry.host, port=entry.port, rack=entry.rack
    )


def _topic(
    entry: metadata.MetadataResponseTopic, known: TopicDescription | None
) -> TopicDescription:
    assert entry.name is not None
    partitions = {new.partition: new for new in map(_partition, entry.partitions)}
    if known is not None and known.topic_id in (entry.topic_id, uuid.UUID(int=0)):
        for old in known.partitions:
            new = partitions.get(old.partition)
            if new is not None and 0 <= new.leader_epoch < old.leader_epoch:
                partitions[old.partition] = old
    return TopicDescription(
        name=entry.name,
        topic_id=entry.topic_id,
        is_internal=entry.is_internal,
        partitions=tuple(partitions[index] for index in sorted(partitions)),
    )


def _partition(entry: metadata.MetadataResponsePartition) -> PartitionDescription:
    return PartitionDescription(
        partition=entry.partition_index,
        leader=NodeId(entry.leader_id) if entry.leader_id >= 0 else None,
        leader_epoch=Epoch(entry.leader_epoch),
        replicas=tuple(NodeId(node) for node in entry.replica_nodes),
        in_sync=tuple(NodeId(node) for node in entry.isr_nodes),
        offline=tuple(NodeId(node) for node in entry.offline_replicas),
        error=error_code(entry.error_code),
    )
