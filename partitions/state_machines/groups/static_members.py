"""Static members (KIP-345): a client that restarts under its instance id takes its place again.

Its new process gets a new member id, so that the old one, should it still live, is fenced (trap
G4). While the group is stable that costs no rebalance: the assignment stays with the instance.
"""

from dataclasses import replace as with_fields

from tidemark.partitions.state_machines.groups.effects import StaticMemberStored, Turn
from tidemark.partitions.state_machines.groups.group import ClassicGroup, Member
from tidemark.partitions.state_machines.groups.rebalance import (
    complete_if_all_joined,
    prepare_rebalance,
)
from tidemark.partitions.state_machines.groups.records import group_record
from tidemark.partitions.state_machines.groups.requests import (
    GroupState,
    Join,
    JoinAnswer,
)
from tidemark.partitions.state_machines.groups.waiting import refuse
from tidemark.partitions.state_machines.token import Token
from tidemark.protocol.errors import ErrorCode


def replace(group: ClassicGroup, member: Member, request: Join, token: Token, turn: Turn) -> None:
    """The process behind a static member is a new one."""
    leader_before = group.leader
    refuse(group, member, turn, ErrorCode.FENCED_INSTANCE_ID, member.id)
    group.rename(member, request.new_member_id)
    group.describe_member(member, request)
    group.expect_heartbeat(member, turn.at.ticks_ms)
    group.begin_join(member, token)
    match group.state:
        case GroupState.STABLE if group.elect_protocol() == group.protocol:
            answer = _answer_in_stable_group(group, member, request, leader_before)
            _store_new_id(group, member, answer, turn)
        case GroupState.STABLE | GroupState.COMPLETING_REBALANCE:
            # While completing, the leader may be assigning to the old id at this moment.
            prepare_rebalance(group, turn, f"{member} has come back as another process")
        case _:
            complete_if_all_joined(group, turn)


def stored(then: StaticMemberStored, turn: Turn, error: ErrorCode) -> None:
    """The new id is durable, or (`error`) it could not be written."""
    group, member = then.group, then.group.members.get(then.member_id)
    if member is None or member.join_token is not then.token:
        return  # It is gone, or another request has taken this one's place.
    if group.state is not GroupState.STABLE:
        return  # A rebalance takes it along, and answers it.
    group.end_join(member)
    group.expect_heartbeat(member, turn.at.ticks_ms)
    if error is ErrorCode.NONE:
        turn.reply(then.token, then.answer)
    else:
        turn.reply(then.token, then.answer.refused(error))
        # What the log holds is not what is here: the next generation writes all anew.
        prepare_rebalance(group, turn, "a static member's new id could not be stored")


def _store_new_id(group: ClassicGroup, member: Member, answer: JoinAnswer, turn: Turn) -> None:
    assert member.join_token is not None
    assignments = {m.id: m.assignment for m in group.members.values()}
    turn.persist(
        [group_record(group, assignments)],
        StaticMemberStored(group, member.id, member.join_token, answer),
    )


def _answer_in_stable_group(
    group: ClassicGroup, member: Member, request: Join, leader_before: str | None
) -> JoinAnswer:
    joined = group.joined(member)
    if request.may_skip_assignment:
        return with_fields(joined, skip_assignment=member.id == group.leader)
    # A client that cannot be told to skip the assignment is not told that it leads.
    return with_fields(joined, leader=leader_before or "", members=())
