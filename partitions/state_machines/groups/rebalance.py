"""From one generation to the next: the join phase, its delays and deadlines, and its end.

```
        first join                 all joined, or time is up           leader's assignment stored
EMPTY ─────────────▶ PREPARING ──────────────────────────────▶ COMPLETING ─────────────▶ STABLE
  ▲                   ▲   │ nobody left                          │  a join, a leave, a death │
  └───────────────────┼───┘                                      │                           │
                      └──────────────────────────────────────────┴───────────────────────────┘
```
"""

from typing import Final

from tidemark.partitions.state_machines.agenda import NEVER
from tidemark.partitions.state_machines.groups.effects import NothingMore, Turn
from tidemark.partitions.state_machines.groups.group import ClassicGroup
from tidemark.partitions.state_machines.groups.records import group_record
from tidemark.partitions.state_machines.groups.requests import GroupState
from tidemark.partitions.state_machines.groups.waiting import refuse_syncs
from tidemark.protocol.errors import ErrorCode

_LONGER_AT_LEAST_MS: Final = 100
"""By which a join phase that nobody has joined goes on, however little its members ask for."""


def rebalance_or_complete(group: ClassicGroup, turn: Turn, reason: str) -> None:
    """Somebody came, went or changed: begin a rebalance, or end the one under way if it can."""
    if group.state is GroupState.PREPARING_REBALANCE:
        _note(group, turn, reason)
        complete_if_all_joined(group, turn)
    else:
        prepare_rebalance(group, turn, reason)


def prepare_rebalance(group: ClassicGroup, turn: Turn, reason: str) -> None:
    """Ask every member to join again; it learns so from its next heartbeat."""
    _note(group, turn, reason)
    was_empty = group.state is GroupState.EMPTY
    refuse_syncs(group, turn, ErrorCode.REBALANCE_IN_PROGRESS)
    group.is_storing_assignment = False
    group.unsynced.clear()
    group.sync_deadline_ms = NEVER
    group.enter(GroupState.PREPARING_REBALANCE, turn.at.wall_ms)
    if was_empty:
        _wait_for_more_members(group, turn)
    elif group.all_joined:
        complete_join(group, turn)
    else:
        _set_join_deadline(group, turn.at.ticks_ms + group.rebalance_timeout_ms())


def complete_if_all_joined(group: ClassicGroup, turn: Turn) -> None:
    """End the join phase if nobody is missing. An initial rebalance waits for its time."""
    if (
        group.state is GroupState.PREPARING_REBALANCE
        and group.all_joined
        and not group.is_initial_rebalance
    ):
        complete_join(group, turn)


def join_phase_is_over(group: ClassicGroup, turn: Turn) -> None:
    """The join phase's time is up: go on without those that are missing, or wait for newcomers."""
    now, limit = turn.at.ticks_ms, group.initial_limit_ms
    if limit is not None and group.had_newcomer and now < limit:
        group.had_newcomer = False
        _set_join_deadline(group, min(now + turn.settings.initial_rebalance_delay_ms, limit))
    else:
        complete_join(group, turn)


def complete_join(group: ClassicGroup, turn: Turn) -> None:
    """Form the next generation of those that joined.

    Dynamic members that did not are out. Static ones stay until their session ends: they come
    back under the same name. If only such are left, there is nobody to lead, and the phase goes on.
    """
    for member in [m for m in group.members.values() if not (m.is_joining or m.is_static)]:
        _note(group, turn, f"{member} did not join again in time")
        group.remove(member)
    if group.members and not _elect_joined_leader(group):
        again_ms = max(group.rebalance_timeout_ms(), _LONGER_AT_LEAST_MS)
        _set_join_deadline(group, turn.at.ticks_ms + again_ms)
        return
    group.join_deadline_ms = NEVER
    group.initial_limit_ms = None
    group.generation += 1
    if group.members:
        _await_syncs(group, turn)
    else:
        _become_empty(group, turn)


def _note(group: ClassicGroup, turn: Turn, reason: str) -> None:
    group.history.note(group.generation + 1, turn.at.wall_ms, reason)


def _wait_for_more_members(group: ClassicGroup, turn: Turn) -> None:
    # Members of a service start within seconds of each other: one rebalance for all of them.
    delay, now = turn.settings.initial_rebalance_delay_ms, turn.at.ticks_ms
    group.initial_limit_ms = now + max(delay, group.rebalance_timeout_ms())
    group.had_newcomer = False
    _set_join_deadline(group, now + delay)
    if delay == 0:
        complete_join(group, turn)


def _set_join_deadline(group: ClassicGroup, deadline_ms: int) -> None:
    group.join_deadline_ms = deadline_ms
    group.wake_by(deadline_ms)


def _elect_joined_leader(group: ClassicGroup) -> bool:
    """Make sure that the leader is one that joined; whether there is any."""
    assert group.leader is not None
    if group.members[group.leader].is_joining:
        return True
    for member in group.members.values():
        if member.is_joining:
            group.leader = member.id
            return True
    return False


def _await_syncs(group: ClassicGroup, turn: Turn) -> None:
    now = turn.at.ticks_ms
    group.protocol = group.elect_protocol()
    group.enter(GroupState.COMPLETING_REBALANCE, turn.at.wall_ms)
    for member in group.members.values():
        group.unsynced[member.id] = None
        token = group.end_join(member)
        if token is not None:
            turn.reply(token, group.joined(member))
        member.is_new = False
        group.expect_heartbeat(member, now)
    group.sync_deadline_ms = now + group.rebalance_timeout_ms()
    group.wake_by(group.sync_deadline_ms)


def _become_empty(group: ClassicGroup, turn: Turn) -> None:
    group.protocol = None
    group.enter(GroupState.EMPTY, turn.at.wall_ms)
    # If this is lost, the former generation comes back after a restart, and times out.
    turn.persist([group_record(group, {})], NothingMore())
