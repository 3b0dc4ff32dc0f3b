"""SyncGroup: the leader brings the assignment, everybody takes their own (trap G6)."""

from tidemark.partitions.state_machines.agenda import NEVER
from tidemark.partitions.state_machines.groups.effects import AssignmentStored, Turn
from tidemark.partitions.state_machines.groups.group import ClassicGroup, Member
from tidemark.partitions.state_machines.groups.rebalance import prepare_rebalance
from tidemark.partitions.state_machines.groups.records import group_record
from tidemark.partitions.state_machines.groups.requests import GroupState, Sync, SyncAnswer
from tidemark.partitions.state_machines.groups.waiting import refuse_syncs
from tidemark.partitions.state_machines.token import Token
from tidemark.protocol.errors import ErrorCode


def sync(group: ClassicGroup, request: Sync, token: Token, turn: Turn) -> None:
    """Answer with the member's assignment, now or once the leader's is stored."""
    error = _check(group, request)
    if error is not ErrorCode.NONE:
        turn.reply(token, SyncAnswer(error=error))
        return
    member = group.members[request.member_id]
    group.unsynced.pop(member.id, None)
    if not group.unsynced:
        group.sync_deadline_ms = NEVER
    if group.state is GroupState.STABLE:
        turn.reply(token, _assignment(group, member))
    else:
        _wait_for_assignment(group, member, request, token, turn)


def _check(group: ClassicGroup, request: Sync) -> ErrorCode:
    error = group.check_member(request.member_id, request.instance_id)
    if error is not ErrorCode.NONE:
        return error
    if request.generation != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    if _differs(request.protocol_type, group.protocol_type) or _differs(
        request.protocol, group.protocol
    ):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if group.state is GroupState.PREPARING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE


def _differs(claimed: str | None, actual: str | None) -> bool:
    return claimed is not None and claimed != actual


def _wait_for_assignment(
    group: ClassicGroup, member: Member, request: Sync, token: Token, turn: Turn
) -> None:
    if member.sync_token is not None:
        turn.reply(member.sync_token, SyncAnswer(error=ErrorCode.REBALANCE_IN_PROGRESS))
    member.sync_token = token
    # The leader's second request brings nothing new: its first assignment is on its way.
    if member.id != group.leader or group.is_storing_assignment:
        return
    assignments = {m: request.assignments.get(m, b"") for m in group.members}
    group.is_storing_assignment = True
    turn.persist(
        [group_record(group, assignments)],
        AssignmentStored(group, group.generation, assignments),
    )


def stored(then: AssignmentStored, turn: Turn, error: ErrorCode) -> None:
    """The assignment is durable, or (`error`) it could not be written."""
    group = then.group
    if group.state is not GroupState.COMPLETING_REBALANCE or group.generation != then.generation:
        return  # A rebalance came in between, and has answered everybody.
    group.is_storing_assignment = False
    if error is not ErrorCode.NONE:
        refuse_syncs(group, turn, error)
        prepare_rebalance(group, turn, "the assignment could not be stored")
        return
    group.enter(GroupState.STABLE, turn.at.wall_ms)
    for member in group.members.values():
        member.assignment = then.assignments[member.id]
        if member.sync_token is not None:
            turn.reply(member.sync_token, _assignment(group, member))
            member.sync_token = None
            group.expect_heartbeat(member, turn.at.ticks_ms)


def _assignment(group: ClassicGroup, member: Member) -> SyncAnswer:
    return SyncAnswer(
        protocol_type=group.protocol_type,
        protocol=group.protocol,
        assignment=member.assignment,
    )
