"""How members go: they leave, are taken out, or fall silent."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from tidemark.partitions.state_machines.groups.consumer import targets
from tidemark.partitions.state_machines.groups.consumer.group import ConsumerGroup
from tidemark.partitions.state_machines.groups.consumer.member import (
    AWAY_EPOCH,
    ConsumerMember,
    MemberState,
)
from tidemark.partitions.state_machines.groups.consumer.naming import name_of
from tidemark.partitions.state_machines.groups.consumer.targets import Topics
from tidemark.partitions.state_machines.groups.effects import Turn
from tidemark.partitions.state_machines.groups.requests import (
    ConsumerHeartbeat,
    ConsumerHeartbeatAnswer,
    Leave,
    LeaveAnswer,
    Leaver,
)
from tidemark.partitions.state_machines.groups.topic_view import NO_PARTITIONS
from tidemark.protocol.errors import ErrorCode, RequestError


def leave(
    group: ConsumerGroup, request: ConsumerHeartbeat, topics: Topics, turn: Turn
) -> ConsumerHeartbeatAnswer:
    """The member goes, for good or (a static one) for a while. Raises `RequestError`."""
    error = group.check_member(request.member_id, request.instance_id)
    if error is not ErrorCode.NONE:
        raise RequestError(error, f"group {group.id} has no member {request.member_id}")
    member = group.members[request.member_id]
    if request.epoch == AWAY_EPOCH:
        _go_away(group, member, turn)
    else:
        _remove(group, [(member, f"{name_of(member)} left")], topics, turn)
    return ConsumerHeartbeatAnswer(member_id=request.member_id, epoch=request.epoch)


def remove_all(group: ConsumerGroup, request: Leave, topics: Topics, turn: Turn) -> LeaveAnswer:
    """Members go at an administrator's word, or classic ones at their own: by member id, or by
    instance id."""
    gone: list[tuple[ConsumerMember, str]] = []
    outcomes: list[tuple[Leaver, ErrorCode]] = []
    for leaver in request.leavers:
        member_id = leaver.member_id
        if not member_id and leaver.instance_id is not None:
            member_id = group.static_ids.get(leaver.instance_id, "")
        error = group.check_member(member_id, leaver.instance_id)
        outcomes.append((leaver, error))
        if error is ErrorCode.NONE and all(member.id != member_id for member, _ in gone):
            member = group.members[member_id]
            said = f": {leaver.reason}" if leaver.reason else ""
            went = "left" if member.is_classic else "was removed"
            gone.append((member, f"{name_of(member)} {went}{said}"))
    _remove(group, gone, topics, turn)
    return LeaveAnswer(members=tuple(outcomes))


def expire(group: ConsumerGroup, topics: Topics, turn: Turn) -> None:
    """Take out who is overdue, and set the group's alarm anew."""
    now, gone = turn.at.ticks_ms, dict[str, str]()
    session_ms = turn.settings.of(group.id).consumer_session_timeout_ms
    for member_id in _due(group.sessions, now):
        silent_seconds = group.members[member_id].session_ms(session_ms) / 1000
        gone[member_id] = f"was not heard for {silent_seconds:g} s"
    for deadlines, what in (
        (group.revocations, "did not give up its partitions"),
        (group.rounds, "did not join again, or ask for its assignment,"),
    ):
        for member_id in _due(deadlines, now):
            seconds = group.members[member_id].rebalance_timeout_ms / 1000
            gone.setdefault(member_id, f"{what} within {seconds:g} s")
    leavers = [(group.members[member_id], why) for member_id, why in gone.items()]
    _remove(group, [(member, f"{name_of(member)} {why}") for member, why in leavers], topics, turn)
    group.wake_ms = group.first_deadline()


def _due(deadlines: Mapping[str, int], now: int) -> list[str]:
    return [member_id for member_id, deadline_ms in deadlines.items() if deadline_ms <= now]


def _go_away(group: ConsumerGroup, member: ConsumerMember, turn: Turn) -> None:
    """It keeps its part until its session ends; what it had to give up, it has given up."""
    group.put(replace(member, epoch=AWAY_EPOCH, state=MemberState.STABLE, revoking=NO_PARTITIONS))
    session_ms = turn.settings.of(group.id).consumer_session_timeout_ms
    group.expect(member.id, turn.at.ticks_ms + session_ms)


def _remove(
    group: ConsumerGroup,
    gone: Iterable[tuple[ConsumerMember, str]],
    topics: Topics,
    turn: Turn,
) -> None:
    """One new target for all that have gone."""
    reasons = []
    for member, reason in gone:
        group.remove(member)
        reasons.append(reason)
    if not reasons:
        return
    first, *others = reasons
    targets.begin_epoch(group, first, turn)
    for reason in others:
        group.history.note(group.epoch, turn.at.wall_ms, reason)
    targets.refresh(group, topics, turn)
    targets.make_target(group, topics, turn)
