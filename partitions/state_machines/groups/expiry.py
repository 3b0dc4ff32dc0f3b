"""What happens because nothing happened: members fall silent, phases run out of time.

A rebalance always ends: every phase has a deadline, and every member that a phase waits for is
either heard within its session timeout or taken out.
"""

from tidemark.partitions.state_machines.groups.effects import Turn
from tidemark.partitions.state_machines.groups.group import ClassicGroup
from tidemark.partitions.state_machines.groups.rebalance import (
    complete_if_all_joined,
    join_phase_is_over,
    prepare_rebalance,
    rebalance_or_complete,
)
from tidemark.partitions.state_machines.groups.requests import GroupState
from tidemark.partitions.state_machines.groups.waiting import remove_member


def expire(group: ClassicGroup, turn: Turn) -> None:
    """Do all that is due, and set the group's alarm anew."""
    _expire_members(group, turn)
    if group.join_deadline_ms <= turn.at.ticks_ms:
        join_phase_is_over(group, turn)
    if group.sync_deadline_ms <= turn.at.ticks_ms:
        _expire_unsynced(group, turn)
    group.wake_ms = group.first_deadline()


def _expire_members(group: ClassicGroup, turn: Turn) -> None:
    now = turn.at.ticks_ms
    unclaimed = [member_id for member_id, deadline in group.pending.items() if deadline <= now]
    for member_id in unclaimed:
        del group.pending[member_id]
    silent = [member for member in group.members.values() if member.is_overdue(now)]
    for member in silent:
        remove_member(group, member, turn)
    is_joining = group.state is GroupState.PREPARING_REBALANCE
    if silent:
        why = "; ".join(
            f"{member} was not heard for {member.session_timeout_ms / 1000:g} s"
            for member in silent
        )
        rebalance_or_complete(group, turn, why)
    elif unclaimed and is_joining:
        complete_if_all_joined(group, turn)


def _expire_unsynced(group: ClassicGroup, turn: Turn) -> None:
    """Members that joined and never asked for their assignment are gone (KAFKA-13435)."""
    unsynced = [group.members[member_id] for member_id in group.unsynced]
    for member in unsynced:
        remove_member(group, member, turn)
    why = "; ".join(f"{member} did not ask for its assignment in time" for member in unsynced)
    prepare_rebalance(group, turn, why)
