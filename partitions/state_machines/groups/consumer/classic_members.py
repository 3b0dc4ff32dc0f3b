"""Members of the classic protocol in a group of the consumer protocol (KIP-848's migration).

The coordinator assigns, so such a group has no leader and no generation that all enter together:
each member goes its own way, by its own requests. A Heartbeat tells it whether there is anything to
join for; JoinGroup says what it still owns, and brings it one step nearer to its target; SyncGroup
tells it what it has. Its generation is its member epoch.
"""

from dataclasses import replace

from tidemark.partitions.state_machines.groups.consumer import embedded, targets
from tidemark.partitions.state_machines.groups.consumer.group import ConsumerGroup
from tidemark.partitions.state_machines.groups.consumer.member import (
    ClassicSide,
    ConsumerMember,
    MemberState,
)
from tidemark.partitions.state_machines.groups.consumer.stepping import step
from tidemark.partitions.state_machines.groups.consumer.targets import Topics
from tidemark.partitions.state_machines.groups.effects import Turn
from tidemark.partitions.state_machines.groups.requests import (
    UNKNOWN_MEMBER,
    Heartbeat,
    Join,
    JoinAnswer,
    Sync,
    SyncAnswer,
)
from tidemark.partitions.state_machines.groups.settings import GroupSettings
from tidemark.partitions.state_machines.groups.subscriptions import CONSUMER
from tidemark.partitions.state_machines.groups.topic_view import (
    NO_PARTITIONS,
    MayKnow,
    Partitions,
)
from tidemark.protocol.consumer_protocol import Subscription
from tidemark.protocol.errors import ErrorCode, MalformedMessage


def join(group: ConsumerGroup, request: Join, topics: Topics, turn: Turn) -> JoinAnswer:
    """The answer, which is to leave once all that it rests on is durable."""
    said = _subscription(group, request)
    if said is None:
        return _refused(request, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if request.may_know is not None:
        said = _shown(said, request.may_know)
    is_nobody = request.member_id == UNKNOWN_MEMBER
    if is_nobody and request.instance_id is None and request.requires_member_id:
        error = ErrorCode.MEMBER_ID_REQUIRED
        return JoinAnswer(error=error, member_id=request.new_member_id)
    owned = embedded.owned(said, topics.view)
    before = _speaker(group, request)
    error = _check_joining(group, request, before, owned, turn.settings)
    if error is not ErrorCode.NONE:
        return _refused(request, error)
    after = _described(before, request, said)
    is_other = before is not None and before.id != after.id
    member = step(group, before, after, NO_PARTITIONS if is_other else owned, topics, turn)
    group.rounds.pop(member.id, None)
    group.expect_round(member.id, turn.at.ticks_ms + member.rebalance_timeout_ms)
    return JoinAnswer(
        member_id=member.id,
        generation=member.epoch,
        protocol_type=CONSUMER,
        protocol=request.protocols[0][0],
    )


def sync(group: ConsumerGroup, request: Sync, topics: Topics, turn: Turn) -> SyncAnswer:
    """The answer, which is to leave once all that it rests on is durable."""
    error = _check(group, request)
    if error is not ErrorCode.NONE:
        return SyncAnswer(error=error)
    member = group.members[request.member_id]
    assert member.classic is not None
    claimed = (request.protocol_type, request.protocol)
    told = (CONSUMER, member.classic.protocol)
    if any(name not in (None, ours) for name, ours in zip(claimed, told, strict=True)):
        return SyncAnswer(error=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if member.epoch < group.epoch and member.state is not MemberState.REVOKING:
        group.expect_round(member.id, turn.at.ticks_ms + member.rebalance_timeout_ms)
        return SyncAnswer(error=ErrorCode.REBALANCE_IN_PROGRESS)
    group.rounds.pop(member.id, None)
    group.expect(member.id, turn.at.ticks_ms + member.classic.session_timeout_ms)
    return SyncAnswer(
        protocol_type=CONSUMER,
        protocol=member.classic.protocol,
        assignment=embedded.assignment(member, topics.view),
    )


def heartbeat(group: ConsumerGroup, request: Heartbeat, topics: Topics, ticks_ms: int) -> ErrorCode:
    """The member lives; NONE, or what it must do."""
    error = _check(group, request)
    if error is not ErrorCode.NONE:
        return error
    member = group.members[request.member_id]
    assert member.classic is not None
    group.expect(member.id, ticks_ms + member.classic.session_timeout_ms)
    if not (_has_to_join(group, member) or targets.have_changed(group, topics)):
        return ErrorCode.NONE
    group.expect_round(member.id, ticks_ms + member.rebalance_timeout_ms)
    return ErrorCode.REBALANCE_IN_PROGRESS


def _has_to_join(group: ConsumerGroup, member: ConsumerMember) -> bool:
    if member.epoch < group.epoch or member.state is MemberState.REVOKING:
        return True
    if member.state is MemberState.STABLE:
        return False
    # An eager member stops reading to join: once all that it waits for is free, not for each.
    missing = group.target[member.id] - member.assigned
    return all(group.is_free_for(member.id, partition) for partition in missing)


def _subscription(group: ConsumerGroup, request: Join) -> Subscription | None:
    """What the member reads; None if it could not be in one group with the others."""
    if request.protocol_type != CONSUMER or not request.protocols:
        return None
    # The group may become a classic one again: there must be a protocol left that all speak.
    spoken = set(request.protocol_names)
    for other in group.members.values():
        if other.classic is not None and other.id != request.member_id:
            spoken &= {name for name, _ in other.classic.protocols}
    try:
        return embedded.subscription(request.protocols) if spoken else None
    except MalformedMessage:
        return None


def _shown(said: Subscription, may_know: MayKnow) -> Subscription:
    """As if what the member may not know of were not there."""
    topics = tuple(filter(may_know, said.topics))
    owned = frozenset(each for each in said.owned if may_know(each.topic))
    return replace(said, topics=topics, owned=owned)


def _speaker(group: ConsumerGroup, request: Join) -> ConsumerMember | None:
    """The member that the client is, or whose place it takes; None for a new one."""
    if request.instance_id is not None and request.member_id == UNKNOWN_MEMBER:
        return group.members.get(group.static_ids.get(request.instance_id, ""))
    return group.members.get(request.member_id)


def _check_joining(
    group: ConsumerGroup,
    request: Join,
    member: ConsumerMember | None,
    owned: Partitions,
    settings: GroupSettings,
) -> ErrorCode:
    is_known = request.member_id != UNKNOWN_MEMBER
    if is_known and request.instance_id is not None:
        error = group.check_member(request.member_id, request.instance_id)
        if error is not ErrorCode.NONE:
            return error
    if member is None:
        if owned:
            # It was taken out, and what it owned is others' by now: it has to hear so.
            return ErrorCode.UNKNOWN_MEMBER_ID
        if len(group.members) >= settings.consumer_group_members_max:
            return ErrorCode.GROUP_MAX_SIZE_REACHED
    elif is_known and not member.is_classic:
        return ErrorCode.UNKNOWN_MEMBER_ID
    return ErrorCode.NONE


def _described(before: ConsumerMember | None, request: Join, said: Subscription) -> ConsumerMember:
    member_id = request.member_id or request.new_member_id
    member = before or ConsumerMember(id=member_id)
    if member.id != member_id:
        member = replace(member.anew(), id=member_id)
    return replace(
        member,
        instance_id=member.instance_id if request.instance_id is None else request.instance_id,
        rack_id=said.rack_id,
        client_id=request.client_id,
        client_host=request.client_host,
        topics=frozenset(said.topics),
        pattern=None,
        assignor=None,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        classic=ClassicSide(
            session_timeout_ms=request.session_timeout_ms, protocols=request.protocols
        ),
    )


def _check(group: ConsumerGroup, request: Sync | Heartbeat) -> ErrorCode:
    error = group.check_member(request.member_id, request.instance_id)
    if error is not ErrorCode.NONE:
        return error
    member = group.members[request.member_id]
    if not member.is_classic:
        return ErrorCode.UNKNOWN_MEMBER_ID
    return member.check_epoch(request.generation)


def _refused(request: Join, error: ErrorCode) -> JoinAnswer:
    return JoinAnswer(error=error, member_id=request.member_id)
