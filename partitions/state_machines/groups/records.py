"""A group as records of `__consumer_offsets`, and those records as bytes."""

from collections.abc import Mapping
from typing import Final

from tidemark.partitions.state_machines.groups.effects import LogRecord, RecordValue
from tidemark.partitions.state_machines.groups.group import ClassicGroup
from tidemark.partitions.state_machines.groups.requests import Commit, OffsetToCommit
from tidemark.protocol.messages import consumer_offsets, stored
from tidemark.protocol.messages.consumer_group_records import (
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
)
from tidemark.protocol.messages.consumer_offsets import (
    CoordinatorKey,
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
)
from tidemark.protocol.types import TopicPartition

_OFFSET_KEY_VERSION: Final = 1
# What Kafka 2.1 to 4 write and read. Of the versions of a commit only 1 says when it expires.
_OFFSET_VALUE_VERSION: Final = 3
_EXPIRING_OFFSET_VALUE_VERSION: Final = 1
_GROUP_VALUE_VERSION: Final = 3

NO_EXPIRY: Final = -1
_EXPIRES_MAX: Final = 2**63 - 1


def group_record(group: ClassicGroup, assignments: Mapping[str, bytes]) -> LogRecord:
    """The group's present generation with `assignments` by member id; none is an empty one."""
    members = [
        MemberMetadata(
            member_id=member.id,
            group_instance_id=member.instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            rebalance_timeout=member.rebalance_timeout_ms,
            session_timeout=member.session_timeout_ms,
            subscription=member.metadata(group.protocol),
            assignment=assignments.get(member.id, b""),
        )
        for member in group.members.values()
    ]
    return LogRecord(
        GroupMetadataKey(group=group.id),
        GroupMetadataValue(
            protocol_type=group.protocol_type or "",
            generation=group.generation,
            protocol=group.protocol,
            leader=group.leader,
            current_state_timestamp=group.state_since_ms,
            members=tuple(members),
        ),
    )


def group_tombstone(group_id: str) -> LogRecord:
    return LogRecord(GroupMetadataKey(group=group_id), None)


def offset_record(
    request: Commit, partition: TopicPartition, commit: OffsetToCommit, wall_ms: int
) -> LogRecord:
    return LogRecord(
        _offset_key(request.group_id, partition),
        OffsetCommitValue(
            offset=commit.offset,
            leader_epoch=commit.leader_epoch,
            metadata=commit.metadata,
            commit_timestamp=wall_ms,
            expire_timestamp=_expiry(request.retention_ms, wall_ms),
        ),
    )


def _expiry(retention_ms: int, wall_ms: int) -> int:
    """Who asks for all the time that the request has room for wants it kept: in Kafka the sum
    overflows, and the commit expires at once."""
    return min(wall_ms + retention_ms, _EXPIRES_MAX) if retention_ms >= 0 else NO_EXPIRY


def offset_tombstone(group_id: str, partition: TopicPartition) -> LogRecord:
    return LogRecord(_offset_key(group_id, partition), None)


def _offset_key(group_id: str, partition: TopicPartition) -> OffsetCommitKey:
    return OffsetCommitKey(group=group_id, topic=partition.topic, partition=partition.partition)


def encode_record(record: LogRecord) -> tuple[bytes, bytes | None]:
    """Key and value as Kafka writes them; the value of a tombstone is None."""
    key, value = record
    is_commit = isinstance(key, OffsetCommitKey)
    key_version = _OFFSET_KEY_VERSION if is_commit else key.first_version
    encoded_key = stored.encode_record(key, key_version)
    match value:
        case None:
            return encoded_key, None
        case OffsetCommitValue() if value.expire_timestamp != NO_EXPIRY:
            version = _EXPIRING_OFFSET_VALUE_VERSION
        case OffsetCommitValue():
            version = _OFFSET_VALUE_VERSION
        case GroupMetadataValue():
            version = _GROUP_VALUE_VERSION
        case _:
            version = value.last_version
    return encoded_key, stored.encode_record(value, version)


def decode_record(key: bytes, value: bytes | None) -> LogRecord | None:
    """The record, or None for a kind that is not known here, such as Kafka's share groups.

    Raises `MalformedMessage` for bytes that do not parse.
    """
    decoded_key = consumer_offsets.decode_key(key)
    if decoded_key is None:
        return None
    if value is None:
        return LogRecord(decoded_key, None)
    return LogRecord(decoded_key, _decode_value(decoded_key, value))


def _decode_value(key: CoordinatorKey, value: bytes) -> RecordValue:
    match key:
        case OffsetCommitKey():
            return stored.decode_value(OffsetCommitValue, value)
        case GroupMetadataKey():
            return stored.decode_value(GroupMetadataValue, value)
        case ConsumerGroupMetadataKey():
            return stored.decode_value(ConsumerGroupMetadataValue, value)
        case ConsumerGroupMemberMetadataKey():
            return stored.decode_value(ConsumerGroupMemberMetadataValue, value)
        case ConsumerGroupTargetAssignmentMetadataKey():
            return stored.decode_value(ConsumerGroupTargetAssignmentMetadataValue, value)
        case ConsumerGroupTargetAssignmentMemberKey():
            return stored.decode_value(ConsumerGroupTargetAssignmentMemberValue, value)
        case ConsumerGroupCurrentMemberAssignmentKey():
            return stored.decode_value(ConsumerGroupCurrentMemberAssignmentValue, value)
