"""ConsumerGroupHeartbeat: a member of the consumer protocol joins, lives, leaves."""

from collections.abc import Sequence

from tidemark.broker.network.requests import Pending, RequestContext
from tidemark.broker.node import Node
from tidemark.partitions.state_machines.groups.consumer.member import JOINING_EPOCH
from tidemark.partitions.state_machines.groups.requests import (
    ConsumerHeartbeat,
    ConsumerHeartbeatAnswer,
)
from tidemark.partitions.state_machines.groups.topic_view import (
    Partitions,
    TopicIdPartition,
    by_topic,
)
from tidemark.protocol.messages import consumer_group_heartbeat_response as told
from tidemark.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)

_OWN_MEMBER_IDS_SINCE = 1


def handle(
    node: Node, request: ConsumerGroupHeartbeatRequest, context: RequestContext
) -> Pending[told.ConsumerGroupHeartbeatResponse]:
    member_id = request.member_id
    is_joining = request.member_epoch == JOINING_EPOCH
    if not member_id and is_joining and context.api_version < _OWN_MEMBER_IDS_SINCE:
        member_id = node.coordinator.new_member_id(context.client_id, request.instance_id)
    names, rebalance_ms = request.subscribed_topic_names, request.rebalance_timeout_ms
    heartbeat = ConsumerHeartbeat(
        group_id=request.group_id,
        member_id=member_id,
        epoch=request.member_epoch,
        instance_id=request.instance_id,
        rack_id=request.rack_id,
        client_id=context.client_id or "",
        client_host=f"/{context.client_host}",
        rebalance_timeout_ms=None if rebalance_ms == -1 else rebalance_ms,
        topics=None if names is None else frozenset(names),
        pattern=request.subscribed_topic_regex,
        assignor=request.server_assignor,
        owned=_owned(request.topic_partitions),
        may_know=node.access.topics_known(context.session),
    )
    return node.coordinator.ask(heartbeat, ConsumerHeartbeatAnswer, _respond)


def _owned(
    topics: Sequence[TopicPartitions] | None,
) -> Partitions | None:
    if topics is None:
        return None
    return frozenset(
        TopicIdPartition(topic.topic_id, partition)
        for topic in topics
        for partition in topic.partitions
    )


def _respond(answer: ConsumerHeartbeatAnswer) -> told.ConsumerGroupHeartbeatResponse:
    return told.ConsumerGroupHeartbeatResponse(
        error_code=answer.error,
        error_message=answer.message,
        member_id=answer.member_id,
        member_epoch=answer.epoch,
        heartbeat_interval_ms=answer.heartbeat_interval_ms,
        assignment=None if answer.assignment is None else _assignment(answer.assignment),
    )


def _assignment(partitions: Partitions) -> told.Assignment:
    return told.Assignment(
        topic_partitions=[
            told.TopicPartitions(topic_id=topic_id, partitions=numbers)
            for topic_id, numbers in by_topic(partitions)
        ]
    )
