"""Who waits in a group for an answer, and how each of them gets one, come what may.

Every token that the coordinator keeps is answered exactly once: by what it waits for, by a newer
request of the same member, by the member's end, or by the coordinator's own.
"""

from tidemark.partitions.state_machines.groups.effects import Turn
from tidemark.partitions.state_machines.groups.group import ClassicGroup, Member
from tidemark.partitions.state_machines.groups.requests import JoinAnswer, SyncAnswer
from tidemark.protocol.errors import ErrorCode


def refuse(
    group: ClassicGroup, member: Member, turn: Turn, error: ErrorCode, member_id: str = ""
) -> None:
    """Answer whatever the member waits for with `error`."""
    join_token = group.end_join(member)
    if join_token is not None:
        turn.reply(join_token, JoinAnswer(error=error, member_id=member_id))
    sync_token, member.sync_token = member.sync_token, None
    if sync_token is not None:
        turn.reply(sync_token, SyncAnswer(error=error))


def refuse_syncs(group: ClassicGroup, turn: Turn, error: ErrorCode) -> None:
    """Answer all that wait for an assignment of this generation: they will not get one."""
    for member in group.members.values():
        if member.sync_token is not None:
            turn.reply(member.sync_token, SyncAnswer(error=error))
            member.sync_token = None
            group.expect_heartbeat(member, turn.at.ticks_ms)


def remove_member(group: ClassicGroup, member: Member, turn: Turn) -> None:
    """Take a member out. If it is alive after all, its answer makes it start anew."""
    refuse(group, member, turn, ErrorCode.UNKNOWN_MEMBER_ID)
    group.remove(member)
