"""LeaveGroup: members go, each by itself or several at an administrator's word (trap G12)."""

from tidemark.partitions.state_machines.groups.effects import Turn
from tidemark.partitions.state_machines.groups.group import ClassicGroup
from tidemark.partitions.state_machines.groups.rebalance import rebalance_or_complete
from tidemark.partitions.state_machines.groups.requests import (
    UNKNOWN_MEMBER,
    GroupState,
    Leave,
    LeaveAnswer,
    Leaver,
)
from tidemark.partitions.state_machines.groups.waiting import remove_member
from tidemark.partitions.state_machines.token import Token
from tidemark.protocol.errors import ErrorCode


def leave(group: ClassicGroup, request: Leave, token: Token, turn: Turn) -> None:
    """Answer for each leaver; one rebalance for all that went."""
    reasons: list[str] = []
    outcomes = tuple(
        (leaver, _leave_one(group, leaver, turn, reasons)) for leaver in request.leavers
    )
    turn.reply(token, LeaveAnswer(members=outcomes))
    has_changed = any(error is ErrorCode.NONE for _, error in outcomes)
    if has_changed and group.state is not GroupState.EMPTY:
        rebalance_or_complete(group, turn, "; ".join(reasons) or "a member that was to join left")


def _leave_one(group: ClassicGroup, leaver: Leaver, turn: Turn, reasons: list[str]) -> ErrorCode:
    member_id = leaver.member_id
    if member_id == UNKNOWN_MEMBER and leaver.instance_id is not None:
        # An administrator names the instance, whatever process stands behind it.
        member_id = group.static_ids.get(leaver.instance_id, UNKNOWN_MEMBER)
    elif group.pending.pop(member_id, None) is not None:
        return ErrorCode.NONE
    error = group.check_member(member_id, leaver.instance_id)
    if error is ErrorCode.NONE:
        said = f": {leaver.reason}" if leaver.reason else ""
        reasons.append(f"{group.members[member_id]} left{said}")
        remove_member(group, group.members[member_id], turn)
    return error
