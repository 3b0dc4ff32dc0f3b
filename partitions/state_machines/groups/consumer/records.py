"""A group of the consumer protocol as records of `__consumer_offsets`."""

from collections.abc import Iterable, Iterator

from tidemark.partitions.state_machines.groups.consumer.group import ConsumerGroup
from tidemark.partitions.state_machines.groups.consumer.member import ClassicSide, ConsumerMember
from tidemark.partitions.state_machines.groups.effects import LogRecord
from tidemark.partitions.state_machines.groups.topic_view import (
    Partitions,
    TopicIdPartition,
    by_topic,
)
from tidemark.protocol.messages.consumer_group_records import (
    ClassicMemberMetadata,
    ClassicProtocol,
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
    StoredPartitions,
)


def changed_records(group: ConsumerGroup) -> list[LogRecord]:
    """What must be written for the log to say what is so."""
    recording = group.recording
    wanted = [
        *_of_members(group, sorted(recording.members)),
        *_of_group(group),
    ]
    recording.members.clear()
    recording.is_touched = False
    named = {key for key, _ in wanted}
    # Left over from writes that failed, and not touched since: members and what they had.
    unsure = recording.unsure - named
    again = {key.member_id for key in unsure if isinstance(key, _OF_MEMBER)}
    wanted += _of_members(group, sorted(again))
    named = {key for key, _ in wanted}
    wanted += [LogRecord(key, None) for key in unsure - named]
    return recording.difference(wanted)


def tombstones(group: ConsumerGroup) -> list[LogRecord]:
    """What takes all of the group out of the log."""
    return [LogRecord(key, None) for key in sorted(group.recording.keys, key=repr)]


_OF_MEMBER = (
    ConsumerGroupMemberMetadataKey
    | ConsumerGroupTargetAssignmentMemberKey
    | ConsumerGroupCurrentMemberAssignmentKey
)


def _of_group(group: ConsumerGroup) -> Iterator[LogRecord]:
    yield LogRecord(
        ConsumerGroupMetadataKey(group=group.id),
        ConsumerGroupMetadataValue(epoch=group.epoch, metadata_hash=group.topics_hash),
    )
    yield LogRecord(
        ConsumerGroupTargetAssignmentMetadataKey(group=group.id),
        ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=group.target_epoch),
    )


def _of_members(group: ConsumerGroup, member_ids: Iterable[str]) -> Iterator[LogRecord]:
    for member_id in member_ids:
        member, target = group.members.get(member_id), group.target.get(member_id)
        yield LogRecord(
            ConsumerGroupMemberMetadataKey(group=group.id, member_id=member_id),
            None if member is None else _metadata(member),
        )
        yield LogRecord(
            ConsumerGroupTargetAssignmentMemberKey(group=group.id, member_id=member_id),
            None if target is None else _target(target),
        )
        yield LogRecord(
            ConsumerGroupCurrentMemberAssignmentKey(group=group.id, member_id=member_id),
            None if member is None else _current(member),
        )


def _metadata(member: ConsumerMember) -> ConsumerGroupMemberMetadataValue:
    return ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=tuple(sorted(member.topics)),
        subscribed_topic_regex=member.pattern,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.assignor,
        classic_member_metadata=None if member.classic is None else _classic(member.classic),
    )


def _classic(classic: ClassicSide) -> ClassicMemberMetadata:
    return ClassicMemberMetadata(
        session_timeout_ms=classic.session_timeout_ms,
        supported_protocols=tuple(
            ClassicProtocol(name=name, metadata=metadata) for name, metadata in classic.protocols
        ),
    )


def _target(target: Partitions) -> ConsumerGroupTargetAssignmentMemberValue:
    return ConsumerGroupTargetAssignmentMemberValue(
        topic_partitions=tuple(
            StoredPartitions(topic_id=topic_id, partitions=tuple(numbers))
            for topic_id, numbers in by_topic(target)
        )
    )


def _current(member: ConsumerMember) -> ConsumerGroupCurrentMemberAssignmentValue:
    return ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=int(member.state.value),
        assigned_partitions=_held(member, member.assigned),
        partitions_pending_revocation=_held(member, member.revoking),
    )


def _held(member: ConsumerMember, partitions: Partitions) -> tuple[HeldPartitions, ...]:
    return tuple(
        HeldPartitions(
            topic_id=topic_id,
            partitions=tuple(numbers),
            assignment_epochs=tuple(
                member.held_since(TopicIdPartition(topic_id, number)) for number in numbers
            ),
        )
        for topic_id, numbers in by_topic(partitions)
    )


def from_stored(stored: Iterable[StoredPartitions | HeldPartitions]) -> Partitions:
    return frozenset(
        TopicIdPartition(each.topic_id, partition)
        for each in stored
        for partition in each.partitions
    )
