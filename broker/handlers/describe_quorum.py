"""DescribeQuorum: who votes in a group, who only follows, and how far each has come.

Kafka has it for the cluster's metadata alone, as the topic `__cluster_metadata`. Here every
partition is such a group, and may be asked about at its leader.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from tidemark.broker.handlers.change import Change
from tidemark.broker.metadata.brokers import Quorum, Standing
from tidemark.broker.metadata.cluster_log import CLUSTER_KEY
from tidemark.broker.network.requests import RequestContext
from tidemark.broker.steps import Steps
from tidemark.partitions.state_machines.cluster_machine import METADATA_TOPICS
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages import describe_quorum_response as response
from tidemark.protocol.messages.describe_quorum import DescribeQuorumRequest
from tidemark.protocol.messages.describe_quorum_response import (
    DescribeQuorumResponse,
    PartitionData,
    ReplicaState,
    TopicData,
)
from tidemark.protocol.schema import ZERO_UUID
from tidemark.protocol.types import NO_OFFSET, NO_TIMESTAMP_MS, NodeId

if TYPE_CHECKING:
    from tidemark.broker.node import Node

_NOBODY: Final = -1
_DIRECTORIES_SINCE: Final = 2
_NODES_SINCE: Final = 2
"""The versions from which on an answer says which directory a replica is in, and where brokers
are."""


async def handle(
    node: Node, request: DescribeQuorumRequest, context: RequestContext
) -> DescribeQuorumResponse:
    """Answers about the partitions that this broker leads."""
    steps, topics = Steps(), list[TopicData]()
    for topic in request.topics:
        numbers = [asked.partition_index for asked in topic.partitions]
        describe = partial(_describe, node, context.api_version, topic.topic_name)
        partitions = await steps.each(numbers, describe)
        topics.append(TopicData(topic_name=topic.topic_name, partitions=partitions))
    if context.api_version < _NODES_SINCE:
        return DescribeQuorumResponse(topics=topics)
    named = {
        replica.replica_id
        for topic in topics
        for partition in topic.partitions
        for replica in (*partition.current_voters, *partition.observers)
    }
    return DescribeQuorumResponse(topics=topics, nodes=_nodes(node, named))


def asks_about_metadata(request: DescribeQuorumRequest) -> bool:
    """Whether it is for the broker that leads the cluster's metadata."""
    return any(topic.topic_name in METADATA_TOPICS for topic in request.topics)


def refuse(_request: DescribeQuorumRequest, error: RequestError) -> DescribeQuorumResponse:
    return DescribeQuorumResponse(error_code=error.code, error_message=error.message)


def _describe(node: Node, version: int, name: str, partition: int) -> PartitionData:
    try:
        key = _key(node, name, partition)
    except RequestError as error:
        return PartitionData(
            partition_index=partition, error_code=error.code, error_message=error.message
        )
    quorum = node.brokers.quorum(key)
    if quorum is None:
        leader, epoch = node.brokers.leader_of(key)
        return PartitionData(
            partition_index=partition,
            error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER,
            error_message="only the leader knows: ask it",
            leader_id=_NOBODY if leader is None else leader,
            leader_epoch=epoch,
        )
    return PartitionData(
        partition_index=partition,
        leader_id=node.node_id,
        leader_epoch=quorum.epoch,
        high_watermark=quorum.high_watermark,
        current_voters=[_replica(node, each, version) for each in quorum.voters],
        observers=[_replica(node, each, version) for each in _observers(node, key, quorum)],
    )


def _key(node: Node, name: str, partition: int) -> PartitionKey:
    if name in METADATA_TOPICS and partition == CLUSTER_KEY.partition:
        return CLUSTER_KEY
    topic = node.topics.get(name)
    if topic is None or not 0 <= partition < topic.partition_count:
        raise RequestError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return PartitionKey(topic.id, partition)


def _observers(node: Node, key: PartitionKey, quorum: Quorum) -> list[Standing]:
    """Those who learn; and of the metadata, all brokers that do not vote."""
    known = {each.node_id for each in (*quorum.voters, *quorum.learners)}
    others = [] if key != CLUSTER_KEY else [n for n in node.brokers.registered if n not in known]
    return [*quorum.learners, *(Standing(NodeId(n), NO_OFFSET, False) for n in others)]


def _replica(node: Node, standing: Standing, version: int) -> ReplicaState:
    broker = node.brokers.get(standing.node_id) if version >= _DIRECTORIES_SINCE else None
    return ReplicaState(
        replica_id=standing.node_id,
        replica_directory_id=ZERO_UUID if broker is None else broker.directory_id,
        log_end_offset=standing.end_offset,
        last_caught_up_timestamp=(
            node.clock.now_ms() if standing.is_caught_up else NO_TIMESTAMP_MS
        ),
    )


def _nodes(node: Node, named: set[int]) -> list[response.Node]:
    brokers = [node.brokers.get(NodeId(number)) for number in sorted(named)]
    return [
        response.Node(
            node_id=broker.node_id,
            listeners=[
                response.Listener(name=name, host=address.host, port=address.port)
                for name, address in broker.listeners.items()
            ],
        )
        for broker in brokers
        if broker is not None
    ]


CHANGE: Final = Change(
    handle=handle,
    refuse=refuse,
    response=DescribeQuorumResponse,
    may_repeat=True,
    is_for_leader=asks_about_metadata,
)
