"""A group of the consumer protocol from its records."""

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache

from tidemark.partitions.state_machines.groups.consumer.group import ConsumerGroup
from tidemark.partitions.state_machines.groups.consumer.member import (
    ClassicSide,
    ConsumerMember,
    MemberState,
)
from tidemark.partitions.state_machines.groups.consumer.pattern import check_pattern
from tidemark.partitions.state_machines.groups.consumer.records import changed_records, from_stored
from tidemark.partitions.state_machines.groups.effects import RecordValue
from tidemark.partitions.state_machines.groups.settings import GroupSettings
from tidemark.partitions.state_machines.groups.topic_view import Partitions, TopicIdPartition
from tidemark.partitions.state_machines.instant import Instant
from tidemark.protocol.errors import RequestError
from tidemark.protocol.messages.consumer_group_records import (
    ClassicMemberMetadata,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    HeldPartitions,
    StoredMemberState,
)
from tidemark.protocol.messages.consumer_offsets import CoordinatorKey

Records = dict[CoordinatorKey, RecordValue]


def restore(group_id: str, records: Records, settings: GroupSettings, at: Instant) -> ConsumerGroup:
    """The group as it was. Its members have a session timeout from now to be heard, and as long as
    ever to give up what they have to."""
    group = ConsumerGroup(group_id, wall_ms=at.wall_ms)
    default_ms = settings.of(group_id).consumer_session_timeout_ms
    epoch = records.get(ConsumerGroupMetadataKey(group=group_id))
    if isinstance(epoch, ConsumerGroupMetadataValue):
        group.epoch, group.topics_hash = epoch.epoch, epoch.metadata_hash
    target_epoch = records.get(ConsumerGroupTargetAssignmentMetadataKey(group=group_id))
    if isinstance(target_epoch, ConsumerGroupTargetAssignmentMetadataValue):
        group.target_epoch = target_epoch.assignment_epoch
    for key in records:
        if isinstance(key, ConsumerGroupMemberMetadataKey):
            member = _member(group_id, key.member_id, records)
            group.put(_without(member, group.holders))
            group.target[member.id] = _target(group_id, member.id, records)
            group.expect(member.id, at.ticks_ms + member.session_ms(default_ms))
            if member.state is MemberState.REVOKING:
                group.expect_revocation(member.id, at.ticks_ms + member.rebalance_timeout_ms)
    # The log holds what the group would write now; of anything else in it, nothing is known.
    group.recording.restored({key: value for key, value in changed_records(group) if value})
    group.recording.forget(records.keys() - group.recording.keys)
    group.recording.is_touched = False
    return group


def _member(group_id: str, member_id: str, records: Records) -> ConsumerMember:
    said = records[ConsumerGroupMemberMetadataKey(group=group_id, member_id=member_id)]
    assert isinstance(said, ConsumerGroupMemberMetadataValue)
    member = ConsumerMember(
        id=member_id,
        instance_id=said.instance_id,
        rack_id=said.rack_id,
        client_id=said.client_id,
        client_host=said.client_host,
        topics=frozenset(said.subscribed_topic_names),
        pattern=_pattern(said.subscribed_topic_regex or ""),
        assignor=said.server_assignor,
        rebalance_timeout_ms=said.rebalance_timeout_ms,
        classic=_classic(said.classic_member_metadata),
    )
    has = records.get(ConsumerGroupCurrentMemberAssignmentKey(group=group_id, member_id=member_id))
    if not isinstance(has, ConsumerGroupCurrentMemberAssignmentValue):
        return member
    return replace(
        member,
        epoch=has.member_epoch,
        previous_epoch=has.previous_member_epoch,
        state=_state(has.state),
        assigned=from_stored(has.assigned_partitions),
        revoking=from_stored(has.partitions_pending_revocation),
        since=_since([*has.assigned_partitions, *has.partitions_pending_revocation]),
    )


def _since(held: Iterable[HeldPartitions]) -> dict[TopicIdPartition, int]:
    """What the log says of it; records of former releases say nothing."""
    return {
        TopicIdPartition(each.topic_id, number): epoch
        for each in held
        for number, epoch in zip(each.partitions, each.assignment_epochs or (), strict=False)
    }


@lru_cache(maxsize=64)
def _pattern(stored: str) -> str | None:
    """One that is not understood here, though another release took it, names no topics. Its member
    hears so when it joins again."""
    try:
        check_pattern(stored)
    except RequestError:
        return None
    return stored or None


def _classic(stored: ClassicMemberMetadata | None) -> ClassicSide | None:
    if stored is None or not stored.supported_protocols:
        return None
    return ClassicSide(
        session_timeout_ms=stored.session_timeout_ms,
        protocols=tuple((each.name, each.metadata) for each in stored.supported_protocols),
    )


def _state(stored: int) -> MemberState:
    """A state that is not known here has the member's next heartbeat decide anew."""
    try:
        return MemberState(StoredMemberState(stored))
    except ValueError:
        return MemberState.WAITING


def _without(member: ConsumerMember, holders: dict[TopicIdPartition, str]) -> ConsumerMember:
    """The member less what others hold: of a log that gives two the same, the first is believed."""
    return replace(
        member,
        assigned=frozenset(each for each in member.assigned if each not in holders),
        revoking=frozenset(each for each in member.revoking if each not in holders),
    )


def _target(group_id: str, member_id: str, records: Records) -> Partitions:
    target = records.get(
        ConsumerGroupTargetAssignmentMemberKey(group=group_id, member_id=member_id)
    )
    assert target is None or isinstance(target, ConsumerGroupTargetAssignmentMemberValue)
    return frozenset() if target is None else from_stored(target.topic_partitions)
