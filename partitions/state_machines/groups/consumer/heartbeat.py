"""ConsumerGroupHeartbeat: a member joins, lives, is told what to read, and leaves.

What a member may do is settled here (`_admit`), and what it says of itself; the rest is `stepping`.
"""

from dataclasses import replace
from typing import TypeVar

from tidemark.partitions.state_machines.groups.consumer.group import ConsumerGroup
from tidemark.partitions.state_machines.groups.consumer.member import (
    AWAY_EPOCH,
    JOINING_EPOCH,
    ConsumerMember,
    MemberState,
)
from tidemark.partitions.state_machines.groups.consumer.pattern import check_pattern
from tidemark.partitions.state_machines.groups.consumer.stepping import step
from tidemark.partitions.state_machines.groups.consumer.targets import Topics
from tidemark.partitions.state_machines.groups.effects import Turn
from tidemark.partitions.state_machines.groups.requests import (
    ConsumerHeartbeat,
    ConsumerHeartbeatAnswer,
)
from tidemark.partitions.state_machines.groups.settings import GroupSettings
from tidemark.partitions.state_machines.groups.topic_view import NO_PARTITIONS
from tidemark.protocol.errors import ErrorCode, RequestError


def check(request: ConsumerHeartbeat, settings: GroupSettings) -> None:
    """Raise `RequestError` for what is wrong whatever the state of the group."""
    if not request.group_id:
        raise RequestError(ErrorCode.INVALID_GROUP_ID, "a group needs a name")
    if not request.member_id:
        raise _invalid("a member needs an id: from version 1 on its client makes it up")
    if request.instance_id == "":
        raise _invalid("an instance id is not empty; a dynamic member has none")
    if request.epoch < AWAY_EPOCH:
        raise _invalid(f"no member epoch is {request.epoch}")
    if request.epoch == AWAY_EPOCH and request.instance_id is None:
        raise _invalid("only a static member leaves to come back: name its instance id")
    if request.assignor and request.assignor not in settings.consumer_assignors:
        raise RequestError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"no assignor {request.assignor!r}: there are {', '.join(settings.consumer_assignors)}",
        )
    if request.pattern:
        check_pattern(request.pattern)
    if request.epoch == JOINING_EPOCH:
        _check_joining(request)


def _check_joining(request: ConsumerHeartbeat) -> None:
    if request.rebalance_timeout_ms is None or request.rebalance_timeout_ms <= 0:
        raise _invalid("a member that joins says how long it may take to give up partitions")
    if request.topics is None and not request.pattern:
        raise _invalid("a member that joins says what topics it reads")
    if request.owned:
        raise _invalid("a member that joins owns no partitions")


def heartbeat(
    group: ConsumerGroup, request: ConsumerHeartbeat, topics: Topics, turn: Turn
) -> ConsumerHeartbeatAnswer:
    """The answer, which is to leave once all that it rests on is durable. Raises `RequestError`."""
    before = _admit(group, request, turn.settings)
    after = _described(before or ConsumerMember(id=request.member_id), request)
    owned = NO_PARTITIONS if request.epoch == JOINING_EPOCH else request.owned
    member = step(group, before, after, owned, topics, turn)
    settings = turn.settings.of(group.id)
    is_asked_all = request.epoch == JOINING_EPOCH or request.is_full
    # It may also have missed the answer that told it, or be on its way to what it was told.
    is_elsewhere = request.owned is not None and request.owned != member.assigned
    is_news = before is None or before.assigned != member.assigned or is_elsewhere
    return ConsumerHeartbeatAnswer(
        member_id=member.id,
        epoch=member.epoch,
        heartbeat_interval_ms=_interval_ms(member, settings),
        assignment=member.assigned if is_news or is_asked_all else None,
    )


def _admit(
    group: ConsumerGroup, request: ConsumerHeartbeat, settings: GroupSettings
) -> ConsumerMember | None:
    """Who speaks; None for a new member. Raises `RequestError` for one that may not."""
    if request.epoch == JOINING_EPOCH:
        return _admit_joining(group, request, settings)
    error = group.check_member(request.member_id, request.instance_id)
    if error is not ErrorCode.NONE:
        raise RequestError(error, f"group {group.id} has no member {request.member_id}")
    member = group.members[request.member_id]
    # It may have missed the answer that raised its epoch; then it holds no more than it was given.
    has_missed_it = (
        request.epoch == member.previous_epoch
        and request.owned is not None
        and request.owned <= member.assigned
    )
    if request.epoch != member.epoch and not has_missed_it:
        raise RequestError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"the member is in epoch {member.epoch}, not in {request.epoch}: "
            "it gives up all partitions and joins again",
        )
    return member


def _admit_joining(
    group: ConsumerGroup, request: ConsumerHeartbeat, settings: GroupSettings
) -> ConsumerMember | None:
    member = group.members.get(request.member_id)
    if request.instance_id is not None:
        current = group.static_ids.get(request.instance_id)
        if current is not None and current != request.member_id:
            if not group.members[current].has_given_up_its_name:
                raise RequestError(
                    ErrorCode.UNRELEASED_INSTANCE_ID,
                    f"{request.instance_id} is member {current}, which has not left yet",
                )
            return group.members[current]
    if member is None and len(group.members) >= settings.consumer_group_members_max:
        raise RequestError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"the group has {len(group.members)} members, as many as it may have",
        )
    return member


T = TypeVar("T")


def _newer(said: T | None, known: T) -> T:
    """What is not said has not changed."""
    return known if said is None else said


def _described(member: ConsumerMember, request: ConsumerHeartbeat) -> ConsumerMember:
    pattern = member.pattern if request.pattern is None else request.pattern or None
    described = replace(
        member,
        id=request.member_id,
        instance_id=_newer(request.instance_id, member.instance_id),
        rack_id=_newer(request.rack_id, member.rack_id),
        client_id=request.client_id,
        client_host=request.client_host,
        topics=_newer(request.topics, member.topics),
        pattern=pattern,
        may_know=request.may_know,
        assignor=_newer(request.assignor, member.assignor),
        rebalance_timeout_ms=_newer(request.rebalance_timeout_ms, member.rebalance_timeout_ms),
        classic=None,
    )
    if request.epoch == JOINING_EPOCH:
        return replace(
            described.anew(),
            topics=request.topics or frozenset(),
            pattern=request.pattern or None,
        )
    return described


def _interval_ms(member: ConsumerMember, settings: GroupSettings) -> int:
    """Who waits for something comes back sooner."""
    interval_ms = settings.consumer_heartbeat_interval_ms
    if member.state is MemberState.STABLE:
        return interval_ms
    return min(interval_ms, settings.consumer_reconciling_interval_ms)


def _invalid(sentence: str) -> RequestError:
    return RequestError(ErrorCode.INVALID_REQUEST, sentence)
