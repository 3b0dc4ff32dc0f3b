"""Heartbeat: a member says that it lives, and learns whether to join again (trap G5)."""

from tidemark.partitions.state_machines.groups.group import ClassicGroup
from tidemark.partitions.state_machines.groups.requests import GroupState, Heartbeat
from tidemark.protocol.errors import ErrorCode


def heartbeat(group: ClassicGroup, request: Heartbeat, ticks_ms: int) -> ErrorCode:
    error = group.check_member(request.member_id, request.instance_id)
    if error is not ErrorCode.NONE:
        return error
    if request.generation != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    group.expect_heartbeat(group.members[request.member_id], ticks_ms)
    if group.state is GroupState.PREPARING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE
