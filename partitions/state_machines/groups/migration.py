"""A group changes its protocol with members in it, while they read on (KIP-848's migration).

*Up*: the first member that speaks the consumer protocol joins a group of classic consumers. Each
of those becomes a member of the new group, holding what it may be reading, and goes on speaking its
own protocol (`consumer/classic_members.py`).

*Down*: the last member that speaks the consumer protocol has gone. The group goes on as it is until
every member has come where it is to be, and nothing is on its way to the log. Then its epoch is
every member's generation, and it becomes a classic group of that generation, once that is durable:
no commit is refused on the way, and nobody has to be told that it lost what it reads.
"""

from collections.abc import Sequence
from dataclasses import replace

from tidemark.partitions.state_machines.groups.consumer import embedded, writing
from tidemark.partitions.state_machines.groups.consumer.group import (
    ConsumerGroup,
    ConsumerGroupState,
)
from tidemark.partitions.state_machines.groups.consumer.member import (
    ClassicSide,
    ConsumerMember,
    MemberState,
)
from tidemark.partitions.state_machines.groups.consumer.records import tombstones
from tidemark.partitions.state_machines.groups.consumer.targets import Topics
from tidemark.partitions.state_machines.groups.effects import (
    GroupDowngraded,
    LogRecord,
    Turn,
)
from tidemark.partitions.state_machines.groups.group import ClassicGroup, Member
from tidemark.partitions.state_machines.groups.rebalance import prepare_rebalance
from tidemark.partitions.state_machines.groups.records import group_record
from tidemark.partitions.state_machines.groups.requests import GroupState, Join
from tidemark.partitions.state_machines.groups.settings import GroupSettings
from tidemark.partitions.state_machines.groups.subscriptions import CONSUMER
from tidemark.partitions.state_machines.groups.topic_view import TopicView
from tidemark.partitions.state_machines.groups.waiting import refuse
from tidemark.protocol.errors import ErrorCode, MalformedMessage, RequestError
from tidemark.protocol.messages.consumer_offsets import GroupMetadataKey


def upgraded(group: ClassicGroup, topics: Topics, turn: Turn) -> ConsumerGroup:
    """The group as one of the consumer protocol, with its members. `group` stays as it is until
    `give_way`. Raises `RequestError` if it cannot be."""
    if not turn.settings.may_upgrade:
        raise _not_possible(group, "group.consumer.migration.policy keeps them there")
    if group.protocol_type != CONSUMER:
        raise _not_possible(group, f"and is one of {group.protocol_type}, not of consumers")
    converted = ConsumerGroup(group.id, wall_ms=turn.at.wall_ms, epoch=group.generation)
    converted.history = group.history
    # Its first record takes the place of what the log has of the former group.
    converted.recording.forget([GroupMetadataKey(group=group.id), *group.leftovers])
    # A member that was in no generation yet has nothing, may not know its id, and joins again.
    settled = [member for member in group.members.values() if not member.is_new]
    try:
        for member in settled:
            _take_over(converted, group, member, topics.view, turn)
        for member in settled:
            _hold_what_it_lets_go(converted, member, topics.view, turn)
    except MalformedMessage as error:
        raise _not_possible(group, f"whose metadata cannot be read ({error})") from error
    return converted


def give_way(group: ClassicGroup, turn: Turn) -> None:
    """The group is one of the consumer protocol from now on: whoever waits in it joins that one."""
    for member in group.members.values():
        refuse(group, member, turn, ErrorCode.REBALANCE_IN_PROGRESS, member.id)
    group.pending.clear()
    group.enter(GroupState.DEAD, turn.at.wall_ms)


def _take_over(
    converted: ConsumerGroup, group: ClassicGroup, member: Member, view: TopicView, turn: Turn
) -> None:
    said = embedded.subscription(member.protocols)
    assigned = embedded.assigned(member.assignment, view)
    taken = ConsumerMember(
        id=member.id,
        instance_id=member.instance_id,
        rack_id=said.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topics=frozenset(said.topics),
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        epoch=group.generation,
        previous_epoch=group.generation,
        # Of a leader that gave two the same, the first is believed.
        assigned=frozenset(each for each in assigned if each not in converted.holders),
        classic=ClassicSide(
            session_timeout_ms=member.session_timeout_ms, protocols=member.protocols
        ),
    )
    converted.put(taken)
    converted.target[member.id] = taken.assigned
    converted.expect(member.id, turn.at.ticks_ms + member.session_timeout_ms)


def _hold_what_it_lets_go(
    converted: ConsumerGroup, member: Member, view: TopicView, turn: Turn
) -> None:
    """A cooperative member joins with what it owns, and gives up what it is not given again only
    after it has heard so: until it joins once more, nobody else may have that."""
    taken = converted.members[member.id]
    owned = embedded.owned(embedded.subscription(member.protocols), view)
    revoking = frozenset(each for each in owned if each not in converted.holders)
    if revoking:
        converted.put(replace(taken, state=MemberState.REVOKING, revoking=revoking))
        converted.expect_revocation(member.id, turn.at.ticks_ms + taken.rebalance_timeout_ms)


def _not_possible(group: ClassicGroup, why: str) -> RequestError:
    return RequestError(
        ErrorCode.GROUP_ID_NOT_FOUND,
        f"group {group.id} has members of the classic protocol, {why}: stop them all before any "
        "joins by the consumer protocol, or keep group.protocol=classic",
    )


def begin_downgrade(group: ConsumerGroup, topics: Topics, turn: Turn) -> None:
    """Write the group as a classic one, if it is to be one and nothing is in the way."""
    if not _can_downgrade(group, turn.settings):
        return
    classic = _downgraded(group, topics.view, turn)
    assignments = {member.id: member.assignment for member in classic.members.values()}
    records = [*tombstones(group), group_record(classic, assignments)]
    group.recording.begin(records)
    turn.persist(records, GroupDowngraded(group, classic))


def downgrade_stored(
    then: GroupDowngraded, records: Sequence[LogRecord], error: ErrorCode, turn: Turn
) -> ClassicGroup | None:
    """The write of a downgrade is over. The classic group, if that takes the place from now on;
    `None` if the write failed, or somebody came or changed meanwhile."""
    group, classic, recording = then.group, then.classic, then.group.recording
    turn.effects.replies += recording.end(records, error)
    if error is not ErrorCode.NONE or recording.is_touched:
        # The log may say either now: all of the group is written anew.
        recording.forget(key for key, _ in records)
        if error is ErrorCode.NONE or recording.has_waiting:
            writing.write(group, turn)
        return None
    for member in classic.members.values():
        classic.expect_heartbeat(member, turn.at.ticks_ms)
    prepare_rebalance(classic, turn, "the last member of the consumer protocol has left")
    return classic


def _can_downgrade(group: ConsumerGroup, settings: GroupSettings) -> bool:
    recording = group.recording
    return (
        settings.may_downgrade
        and not (recording.is_touched or recording.is_under_way or group.is_dead)
        and 0 < len(group.members) <= settings.group_members_max
        and all(member.is_classic for member in group.members.values())
        and group.state is ConsumerGroupState.STABLE
    )


def _downgraded(group: ConsumerGroup, view: TopicView, turn: Turn) -> ClassicGroup:
    classic = ClassicGroup(group.id, wall_ms=turn.at.wall_ms)
    classic.generation = group.epoch
    classic.protocol_type = CONSUMER
    classic.history = group.history
    for each in group.members.values():
        assert each.classic is not None
        member = Member(each.id, _as_join(group.id, each, each.classic))
        member.assignment = embedded.assignment(each, view)
        classic.add(member)
    classic.protocol = classic.elect_protocol()
    classic.enter(GroupState.STABLE, turn.at.wall_ms)
    return classic


def _as_join(group_id: str, member: ConsumerMember, classic: ClassicSide) -> Join:
    """The request that would have brought the member in."""
    return Join(
        group_id=group_id,
        member_id=member.id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        protocol_type=CONSUMER,
        protocols=classic.protocols,
        session_timeout_ms=classic.session_timeout_ms,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        new_member_id=member.id,
    )
