"""DescribeReplicas: how far each replica of a partition is, learners and observers too."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from tidemark.broker.metadata.topic import Topic
from tidemark.broker.network.requests import RequestContext
from tidemark.broker.replicas.replica import Replica
from tidemark.broker.steps import Steps, distinct
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.describe_replicas import (
    CompactionProgress,
    DescribeReplicasRequest,
    DescribeReplicasResponse,
    DescribeReplicasTopic,
    PartitionReplicas,
    ReassignmentProgress,
    ReplicaDescription,
    TopicReplicas,
)
from tidemark.protocol.types import NodeId

if TYPE_CHECKING:
    from tidemark.broker.node import Node

VOTER: Final = "voter"
LEARNER: Final = "learner"
OBSERVER: Final = "observer"
_UNKNOWN: Final = -1


async def handle(
    node: Node, request: DescribeReplicasRequest, context: RequestContext
) -> DescribeReplicasResponse:
    steps, topics = Steps(), list[TopicReplicas]()
    if request.topics is None:
        for topic in node.topics:
            topics.append(await _describe(node, topic, None, steps))
        return DescribeReplicasResponse(topics=topics)
    for asked in distinct(request.topics, _asked):
        known = node.topics.get(asked.topic)
        if known is None:
            unknown = TopicReplicas(
                topic=asked.topic, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            )
            topics.append(unknown)
            await steps.did(1)
        else:
            topics.append(await _describe(node, known, asked.partitions, steps))
    return DescribeReplicasResponse(topics=topics)


def _asked(topic: DescribeReplicasTopic) -> tuple[str, tuple[int, ...] | None]:
    return topic.topic, None if topic.partitions is None else tuple(topic.partitions)


async def _describe(
    node: Node, topic: Topic, partitions: Sequence[int] | None, steps: Steps
) -> TopicReplicas:
    numbers = range(topic.partition_count) if partitions is None else partitions
    described = await steps.each(numbers, partial(_partition, node, topic))
    return TopicReplicas(topic=topic.name, partitions=described)


def _partition(node: Node, topic: Topic, partition: int) -> PartitionReplicas:
    if not 0 <= partition < topic.partition_count:
        return PartitionReplicas(
            partition=partition, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        )
    leader, epoch = node.brokers.leader_of(PartitionKey(topic.id, partition))
    replica = topic.replica(partition)
    if replica is not None and not replica.is_available:
        replica = None
    leads = replica is not None and replica.is_serving
    described = _unknown(node, topic, partition)
    try:
        if replica is not None and leads:
            described |= _as_leader(node, replica, described)
        elif replica is not None:
            described[node.node_id] = _own(node, replica, described[node.node_id].role)
    except (RequestError, KeyError):
        replica = None  # it has just been given up
    return PartitionReplicas(
        partition=partition,
        leader=_UNKNOWN if leader is None else leader,
        leader_epoch=epoch if replica is None else max(epoch, replica.epoch),
        is_leaders_word=leads,
        high_watermark=_UNKNOWN if replica is None else replica.high_watermark,
        log_start=_UNKNOWN if replica is None else replica.log_start,
        replicas=list(described.values()),
        reassignments=_reassignments(node, topic, partition),
        compactions=() if replica is None else _compactions(node, replica),
    )


def _compactions(node: Node, replica: Replica) -> Sequence[CompactionProgress]:
    compaction = node.metrics.compaction
    ratio = compaction.dirty_ratios.get(replica.name)
    if ratio is None:
        return ()
    cleaned_seconds = compaction.cleaned_seconds.get(replica.name, 0.0)
    return [
        CompactionProgress(
            dirty_ratio=ratio,
            cleaned_ms=int(cleaned_seconds * 1000) if cleaned_seconds else _UNKNOWN,
            why=compaction.set_aside.get(replica.name, ""),
        )
    ]


def _reassignments(node: Node, topic: Topic, partition: int) -> Sequence[ReassignmentProgress]:
    wanted = topic.metadata.wanted.get(partition)
    if wanted is None:
        return ()
    state = node.reassigning.reassignments.state(PartitionKey(topic.id, partition))
    if state is None:
        return [ReassignmentProgress(wanted=wanted)]
    progress = ReassignmentProgress(
        wanted=wanted,
        stage=state.stage,
        why=state.why,
        learner=_UNKNOWN if state.learner is None else state.learner,
        copied_bytes=state.copied_bytes,
        remaining_bytes=state.remaining_bytes,
        bytes_per_second=int(state.bytes_per_second),
    )
    return [progress]


def _unknown(node: Node, topic: Topic, partition: int) -> dict[NodeId, ReplicaDescription]:
    """All that the metadata know: who holds it, and why."""
    metadata = topic.metadata
    roles = {
        **dict.fromkeys(metadata.assignments[partition], VOTER),
        **dict.fromkeys(metadata.observers.get(partition, ()), OBSERVER),
    }
    for broker in sorted(metadata.hosts(partition)):
        roles.setdefault(broker, LEARNER)
    return {
        broker: ReplicaDescription(broker=broker, role=role, is_alive=node.brokers.is_alive(broker))
        for broker, role in roles.items()
    }


def _own(node: Node, replica: Replica, role: str) -> ReplicaDescription:
    fresh = replica.freshness
    return ReplicaDescription(
        broker=node.node_id,
        role=role,
        is_alive=True,
        end_offset=fresh.high_watermark,
        lag_records=_UNKNOWN if fresh.lag_records is None else fresh.lag_records,
        staleness_ms=_UNKNOWN if fresh.staleness_ms is None else fresh.staleness_ms,
        parent=_UNKNOWN if fresh.parent is None else fresh.parent,
    )


def _as_leader(
    node: Node, replica: Replica, known: dict[NodeId, ReplicaDescription]
) -> dict[NodeId, ReplicaDescription]:
    """What the leader knows besides: how far the others are."""
    committed = replica.high_watermark
    found = {node.node_id: _own(node, replica, VOTER)}
    for each in replica.member.group.progress():
        found[each.node] = ReplicaDescription(
            broker=each.node,
            role=VOTER if each.is_voter else LEARNER,
            is_alive=node.brokers.is_alive(each.node),
            end_offset=each.end_offset,
            lag_records=_UNKNOWN if each.end_offset < 0 else max(0, committed - each.end_offset),
        )
    for broker, standing in replica.observer_standings().items():
        if broker in known:
            found[broker] = ReplicaDescription(
                broker=broker,
                role=OBSERVER,
                is_alive=node.brokers.is_alive(broker),
                end_offset=standing.committed.offset,
                lag_records=max(0, committed - standing.committed.offset),
                staleness_ms=standing.staleness_ms,
                parent=standing.parent,
            )
    return found
