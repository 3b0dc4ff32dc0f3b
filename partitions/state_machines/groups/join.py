"""JoinGroup: who may enter the next generation, and when its answer comes (traps G1, G3, G10)."""

from tidemark.partitions.state_machines.groups import static_members
from tidemark.partitions.state_machines.groups.effects import Turn
from tidemark.partitions.state_machines.groups.group import ClassicGroup, Member
from tidemark.partitions.state_machines.groups.rebalance import (
    complete_if_all_joined,
    prepare_rebalance,
    rebalance_or_complete,
)
from tidemark.partitions.state_machines.groups.requests import (
    UNKNOWN_MEMBER,
    GroupState,
    Join,
    JoinAnswer,
)
from tidemark.partitions.state_machines.groups.settings import GroupSettings
from tidemark.partitions.state_machines.groups.waiting import refuse, remove_member
from tidemark.partitions.state_machines.token import Token
from tidemark.protocol.errors import ErrorCode


def check(request: Join, settings: GroupSettings) -> ErrorCode:
    """What is wrong with a request, whatever the state of its group."""
    if not request.group_id:
        return ErrorCode.INVALID_GROUP_ID
    shortest, longest = settings.session_timeout_min_ms, settings.session_timeout_max_ms
    if not shortest <= request.session_timeout_ms <= longest:
        return ErrorCode.INVALID_SESSION_TIMEOUT
    return ErrorCode.NONE


def join(group: ClassicGroup, request: Join, token: Token, turn: Turn) -> None:
    """A member, new or known, asks to be in the next generation."""
    if not _has_room(group, request.member_id, turn.settings):
        _turn_away(group, request, token, turn)
    elif not group.supports(request):
        error = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        turn.reply(token, JoinAnswer(error=error, member_id=request.member_id))
    elif request.member_id == UNKNOWN_MEMBER:
        _join_new(group, request, token, turn)
    elif request.member_id in group.pending and request.instance_id is None:
        _add(group, request.member_id, request, token, turn)
    else:
        _join_known(group, request, token, turn)


def _has_room(group: ClassicGroup, member_id: str, settings: GroupSettings) -> bool:
    members_max = settings.group_members_max
    member = group.members.get(member_id)
    match group.state:
        case GroupState.EMPTY | GroupState.DEAD:
            return True
        case GroupState.PREPARING_REBALANCE:
            # Counting those that have joined lets a group shrink that is over a lowered limit.
            is_in = member is not None and member.is_joining
            return is_in or group.joining_count < members_max
        case GroupState.COMPLETING_REBALANCE | GroupState.STABLE:
            return member is not None or len(group.members) < members_max


def _turn_away(group: ClassicGroup, request: Join, token: Token, turn: Turn) -> None:
    turn.reply(token, JoinAnswer(error=ErrorCode.GROUP_MAX_SIZE_REACHED))
    group.pending.pop(request.member_id, None)
    member = group.members.get(request.member_id)
    if member is not None:
        remove_member(group, member, turn)
    complete_if_all_joined(group, turn)


def _join_new(group: ClassicGroup, request: Join, token: Token, turn: Turn) -> None:
    if request.instance_id is not None:
        current = group.static_ids.get(request.instance_id)
        if current is None:
            _add(group, request.new_member_id, request, token, turn)
        else:
            static_members.replace(group, group.members[current], request, token, turn)
    elif request.requires_member_id:
        # A client that never comes back must not hold up the rebalance (KIP-394).
        deadline = turn.at.ticks_ms + request.session_timeout_ms
        group.pending[request.new_member_id] = deadline
        group.wake_by(deadline)
        error = ErrorCode.MEMBER_ID_REQUIRED
        turn.reply(token, JoinAnswer(error=error, member_id=request.new_member_id))
    else:
        _add(group, request.new_member_id, request, token, turn)


def _add(group: ClassicGroup, member_id: str, request: Join, token: Token, turn: Turn) -> None:
    if not group.members:
        group.protocol_type = request.protocol_type
    if group.is_initial_rebalance:
        group.had_newcomer = True
    member = Member(member_id, request)
    member.is_new = True
    group.add(member)
    group.begin_join(member, token)
    group.expect_heartbeat(member, turn.at.ticks_ms, turn.settings.new_member_timeout_ms)
    rebalance_or_complete(group, turn, f"{member} joined{_said(request)}")


def _join_known(group: ClassicGroup, request: Join, token: Token, turn: Turn) -> None:
    error = group.check_member(request.member_id, request.instance_id)
    if error is not ErrorCode.NONE:
        turn.reply(token, JoinAnswer(error=error, member_id=request.member_id))
        return
    member = group.members[request.member_id]
    if _is_current(group, member, request):
        group.expect_heartbeat(member, turn.at.ticks_ms)
        turn.reply(token, group.joined(member))
    else:
        _rejoin(group, member, request, token, turn)


def _is_current(group: ClassicGroup, member: Member, request: Join) -> bool:
    """Whether the member is in the generation it asks for: it may have missed the answer."""
    if member.protocols != request.protocols:
        return False
    match group.state:
        case GroupState.COMPLETING_REBALANCE:
            return True
        case GroupState.STABLE:
            # The leader may have seen what changes the assignment and no member's metadata.
            return member.id != group.leader
    return False


def _rejoin(group: ClassicGroup, member: Member, request: Join, token: Token, turn: Turn) -> None:
    """A member enters the next generation, with what it says of itself now."""
    was = "with other metadata" if member.protocols != request.protocols else "as before"
    group.describe_member(member, request)
    refuse(group, member, turn, ErrorCode.REBALANCE_IN_PROGRESS, member.id)
    group.begin_join(member, token)
    if group.state is GroupState.PREPARING_REBALANCE:
        complete_if_all_joined(group, turn)  # It does what all are asked to do.
    else:
        prepare_rebalance(group, turn, f"{member} joined again, {was}{_said(request)}")


def _said(request: Join) -> str:
    """What the client says, as the end of a sentence."""
    return f": {request.reason}" if request.reason else ""
