"""Metadata: who the brokers are, what the topics are; and topics made by first use."""

from collections.abc import Sequence
from typing import Final

import trio

from tidemark.broker.handlers.unheard_leaders import ask_for_unheard, lacks_leader, with_leaders
from tidemark.broker.metadata.brokers import Brokers, ShownBroker
from tidemark.broker.metadata.partition_view import PartitionView, partition_views
from tidemark.broker.metadata.topic import NewTopic, Topic
from tidemark.broker.network.requests import AskAnother, RequestContext, Session
from tidemark.broker.node import Node
from tidemark.broker.replicas.leadership import NOBODY
from tidemark.broker.steps import Steps, distinct, portions
from tidemark.protocol.acls import ResourceType
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
from tidemark.protocol.schema import ZERO_UUID, maker_of

_IDS_SINCE = 12
_LEADERLESS_SECONDS: Final = 3.0
"""For so long a client may ask a broker in vain that does not hear most of the others."""

_made_partition: Final = maker_of(MetadataResponsePartition)


async def handle(node: Node, request: MetadataRequest, context: RequestContext) -> MetadataResponse:
    """Answers about all, some or no topics (trap M1); may create those asked for by name."""
    steps, topics = Steps(), list[MetadataResponseTopic]()
    if _asks_for_all(request, context.api_version):
        for topic in list(node.topics):
            topics.append(await _describe(node, topic, request, context, steps))
    else:
        for asked in distinct(request.topics or (), lambda topic: (topic.name, topic.topic_id)):
            topics.append(await _answer(node, asked, request, context, steps))
    controller = node.brokers.controller_for_clients
    knows_unheard = False
    if context.session.is_clients and not node.brokers.hears_all:
        elsewhere = await ask_for_unheard(node, topics)
        knows_unheard = elsewhere.knows_some
        topics = [with_leaders(topic, elsewhere) for topic in topics]
        if node.brokers.controller is None and elsewhere.controller is not None:
            controller = elsewhere.controller
    _check_helps(node.brokers, context.session, topics)
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(
                node_id=broker.node_id,
                host=broker.address.host,
                port=broker.address.port,
                rack=broker.rack,
            )
            for broker in _brokers(node, context, dead_too=knows_unheard)
        ],
        cluster_id=node.cluster_id,
        controller_id=NOBODY if controller is None else controller,
        topics=topics,
        cluster_authorized_operations=(
            node.access.operations(context.session, ResourceType.CLUSTER)
            if request.include_cluster_authorized_operations
            else NOT_ASKED
        ),
    )


def _check_helps(
    brokers: Brokers, session: Session, topics: Sequence[MetadataResponseTopic]
) -> None:
    """Raises `AskAnother` if the client comes again and again for leaders that are not known here,
    and this broker may be cut off.

    librdkafka asks the broker that it has last said something to, if that one can be reached. So
    it would ask this one for as long as it is cut off, though the others have leaders for all. Of a
    broker that has hung up it thinks no more.
    """
    if brokers.hears_most or not any(map(lacks_leader, topics)):
        session.leaderless_since = None
    elif session.leaderless_since is None:
        session.leaderless_since = trio.current_time()
    elif trio.current_time() - session.leaderless_since > _LEADERLESS_SECONDS:
        raise AskAnother("this broker may be cut off from those that know who leads")


def _brokers(node: Node, context: RequestContext, *, dead_too: bool) -> Sequence[ShownBroker]:
    """Those that live, and those that have just died, as Kafka has it until their session ends.

    librdkafka gives up its handle of a broker that is not in this list, and what waits for that
    broker waits on: sending offsets to a transaction has hung for minutes (its issue 5511).
    """
    silent_seconds_max = node.settings.broker_session_timeout_ms / 1000
    return node.brokers.shown_to(
        context.session, dead_too=dead_too, silent_seconds_max=silent_seconds_max
    )


def _asks_for_all(request: MetadataRequest, api_version: int) -> bool:
    return request.topics is None or (api_version == 0 and not request.topics)


async def _answer(
    node: Node,
    asked: MetadataRequestTopic,
    request: MetadataRequest,
    context: RequestContext,
    steps: Steps,
) -> MetadataResponseTopic:
    api_version = context.api_version
    try:
        topic = await _find(node, asked, request, api_version)
    except RequestError as error:
        await steps.did(1)
        return MetadataResponseTopic(
            error_code=error.code,
            # Where a name cannot be null, an id is not looked up (trap M5).
            name=asked.name if api_version >= _IDS_SINCE else asked.name or "",
            topic_id=asked.topic_id,
            partitions=(),
        )
    return await _describe(node, topic, request, context, steps)


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


async def _describe(
    node: Node, topic: Topic, request: MetadataRequest, context: RequestContext, steps: Steps
) -> MetadataResponseTopic:
    partitions = list[MetadataResponsePartition]()
    await steps.did(1)
    for portion in portions(range(topic.partition_count)):
        partitions += [_partition(view) for view in partition_views(node.brokers, topic, portion)]
        await steps.did(len(portion))
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.is_internal,
        partitions=partitions,
        topic_authorized_operations=(
            node.access.operations(context.session, ResourceType.TOPIC, topic.name)
            if request.include_topic_authorized_operations
            else NOT_ASKED
        ),
    )


def _partition(view: PartitionView) -> MetadataResponsePartition:
    has_leader = view.leader is not None
    return _made_partition(
        error_code=ErrorCode.NONE if has_leader else ErrorCode.LEADER_NOT_AVAILABLE,
        partition_index=view.partition,
        leader_id=NOBODY if view.leader is None else view.leader,
        leader_epoch=view.epoch,
        replica_nodes=view.replicas,
        isr_nodes=view.in_sync,
        offline_replicas=view.offline,
    )
