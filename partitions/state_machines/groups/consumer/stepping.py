"""One step of a member, whatever its protocol: what it says is taken over, the group gets a new
epoch and target if that changes anything, and the member is brought nearer to its target."""

from tidemark.partitions.state_machines.groups.consumer import targets
from tidemark.partitions.state_machines.groups.consumer.group import ConsumerGroup
from tidemark.partitions.state_machines.groups.consumer.member import ConsumerMember, MemberState
from tidemark.partitions.state_machines.groups.consumer.naming import name_of
from tidemark.partitions.state_machines.groups.consumer.reconciliation import reconcile
from tidemark.partitions.state_machines.groups.consumer.targets import Topics
from tidemark.partitions.state_machines.groups.effects import Turn
from tidemark.partitions.state_machines.groups.topic_view import NO_PARTITIONS, Partitions


def step(
    group: ConsumerGroup,
    before: ConsumerMember | None,
    after: ConsumerMember,
    owned: Partitions | None,
    topics: Topics,
    turn: Turn,
) -> ConsumerMember:
    """The member as it is then. `before` is None for a new one, and has another id if another
    process takes its place; `owned` is what it says it has, None if it does not say."""
    targets.hear(group, after, topics)
    reason = _take_in(group, before, after)
    have_changed = targets.refresh(group, topics, turn)
    # To a new group all topics are other ones: that somebody came says more.
    reason = reason or have_changed
    if reason:
        targets.begin_epoch(group, reason, turn)
        targets.make_target(group, topics, turn)
    member = _bring_nearer(group, group.members[after.id], owned, turn)
    session_ms = member.session_ms(turn.settings.of(group.id).consumer_session_timeout_ms)
    group.expect(member.id, turn.at.ticks_ms + session_ms)
    return member


def _take_in(group: ConsumerGroup, before: ConsumerMember | None, after: ConsumerMember) -> str:
    """Take over what the member says of itself; why that changes the target, or nothing."""
    if before is not None and before.id != after.id:
        group.replace(before, after)
    else:
        group.put(after)
    if before is None:
        return f"{name_of(after)} joined"
    if not before.reads_as(after):
        return f"{name_of(after)} reads other topics, or asks for another assignor"
    if not targets.sees_as(group, before, after):
        return f"{name_of(after)} may know of other topics"
    return ""


def _bring_nearer(
    group: ConsumerGroup, member: ConsumerMember, owned: Partitions | None, turn: Turn
) -> ConsumerMember:
    after = reconcile(
        member,
        target=group.target.get(member.id, NO_PARTITIONS),
        target_epoch=group.target_epoch,
        owned=owned,
        is_free=lambda partition: group.is_free_for(member.id, partition),
    )
    group.put(after)
    if after.revoking != member.revoking:
        group.revocations.pop(after.id, None)
    if after.state is MemberState.REVOKING:
        group.expect_revocation(after.id, turn.at.ticks_ms + after.rebalance_timeout_ms)
    return after
