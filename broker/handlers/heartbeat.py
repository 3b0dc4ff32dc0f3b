"""Heartbeat: a member says that it lives."""

from tidemark.broker.network.requests import RequestContext
from tidemark.broker.node import Node
from tidemark.partitions.state_machines.groups.requests import Heartbeat
from tidemark.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


def handle(node: Node, request: HeartbeatRequest, context: RequestContext) -> HeartbeatResponse:
    heartbeat = Heartbeat(
        group_id=request.group_id,
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        generation=request.generation_id,
    )
    return HeartbeatResponse(error_code=node.coordinator.heartbeat(heartbeat))
