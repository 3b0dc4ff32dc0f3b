"""Metadata: who the brokers are, what the topics are; and topics made by first use."""

from collections.abc import Sequence

from tidemark.broker.metadata.authorized_operations import ON_CLUSTER, ON_TOPIC
from tidemark.broker.metadata.topic import NewTopic, Topic
from tidemark.broker.network.requests import RequestContext
from tidemark.broker.node import Node
from tidemark.broker.replicas.replica import Replica
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.metadata import (
    NOT_ASKED,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from tidemark.protocol.schema import ZERO_UUID

_IDS_SINCE = 12


async def handle(node: Node, request: MetadataRequest, context: RequestContext) -> MetadataResponse:
    """Answers about all, some or no topics (trap M1); may create those asked for by name."""
    if _asks_for_all(request, context.api_version):
        topics = [_describe(node, topic, request) for topic in node.topics]
    else:
        topics = [
            await _answer(node, asked, request, context.api_version)
            for asked in request.topics or ()
        ]
    listener = context.listener
    broker = MetadataResponseBroker(
        node_id=node.node_id,
        host=listener.host,
        port=listener.port,
        rack=node.settings.broker_rack,
    )
    return MetadataResponse(
        brokers=(broker,),
        cluster_id=node.cluster_id,
        controller_id=node.node_id,
        topics=topics,
        cluster_authorized_operations=(
            ON_CLUSTER if request.include_cluster_authorized_operations else NOT_ASKED
        ),
    )


def _asks_for_all(request: MetadataRequest, api_version: int) -> bool:
    return request.topics is None or (api_version == 0 and not request.topics)


async def _answer(
    node: Node, asked: MetadataRequestTopic, request: MetadataRequest, api_version: int
) -> MetadataResponseTopic:
    try:
        topic = await _find(node, asked, request, api_version)
    except RequestError as error:
        return MetadataResponseTopic(
            error_code=error.code,
            # Where a name cannot be null, an id is not looked up (trap M5).
            name=asked.name if api_version >= _IDS_SINCE else asked.name or "",
            topic_id=asked.topic_id,
            partitions=(),
        )
    return _describe(node, topic, request)


async def _find(
    node: Node, asked: MetadataRequestTopic, request: MetadataRequest, api_version: int
) -> Topic:
    if asked.name is None or asked.topic_id != ZERO_UUID:
        return _find_by_id(node, asked, api_version)
    topic = node.topics.get(asked.name)
    if topic is not None:
        return topic
    if not (request.allow_auto_topic_creation and node.settings.auto_create_topics_enable):
        # A name that no topic can have is told apart, so that nobody waits for it to appear.
        node.topics.check_name(asked.name)
        raise RequestError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return await node.topics.ensure(NewTopic(name=asked.name))


def _find_by_id(node: Node, asked: MetadataRequestTopic, api_version: int) -> Topic:
    if api_version < _IDS_SINCE:
        raise RequestError(ErrorCode.INVALID_REQUEST, "topic ids can be asked for from version 12")
    topic = node.topics.by_id(asked.topic_id)
    if topic is None:
        raise RequestError(ErrorCode.UNKNOWN_TOPIC_ID)
    return topic


def _describe(node: Node, topic: Topic, request: MetadataRequest) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.is_internal,
        partitions=_partitions(node, topic.replicas),
        topic_authorized_operations=(
            ON_TOPIC if request.include_topic_authorized_operations else NOT_ASKED
        ),
    )


def _partitions(node: Node, replicas: Sequence[Replica]) -> list[MetadataResponsePartition]:
    me = (node.node_id,)
    return [
        MetadataResponsePartition(
            partition_index=replica.partition,
            leader_id=node.node_id,
            leader_epoch=replica.epoch,
            replica_nodes=me,
            isr_nodes=me,
        )
        if replica.is_available
        else MetadataResponsePartition(
            error_code=ErrorCode.LEADER_NOT_AVAILABLE,
            partition_index=replica.partition,
            leader_id=-1,
            leader_epoch=replica.epoch,
            replica_nodes=me,
            isr_nodes=(),
            offline_replicas=me,
        )
        for replica in replicas
    ]
