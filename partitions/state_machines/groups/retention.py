"""How long the offsets of a group that nobody uses are kept: Kafka's rule (KIP-211)."""

from tidemark.partitions.state_machines.groups.group import ClassicGroup
from tidemark.partitions.state_machines.groups.kinds import AnyGroup, is_empty, topics_read
from tidemark.partitions.state_machines.groups.offsets import OffsetTable
from tidemark.partitions.state_machines.groups.records import NO_EXPIRY
from tidemark.partitions.state_machines.groups.requests import GroupState
from tidemark.protocol.messages.consumer_offsets import OffsetCommitValue
from tidemark.protocol.types import TopicPartition


def expired_partitions(
    group: AnyGroup, offsets: OffsetTable, *, wall_ms: int, retention_ms: int
) -> list[TopicPartition]:
    """The partitions whose commits the group may lose now.

    - A group that was empty for the retention time loses all of them.
    - A group of consumers that is stable, or of the consumer protocol, loses those of topics that
      none of them reads any more, once they are that old.
    - Commits without a group (simple consumers) go by their own age.
    - Any other group loses none, and no commit goes that a newer one is on its way for, or in a
      transaction that is not decided.
    """
    if is_empty(group) or _is_simple(group):
        in_use: frozenset[str] = frozenset()
    elif _is_settled(group) and (topics := topics_read(group)) is not None:
        in_use = topics
    else:
        return []
    return [
        partition
        for partition, commit in offsets.of(group.id).items()
        if partition.topic not in in_use
        and not offsets.is_in_flight(group.id, partition)
        and not offsets.is_unstable(group.id, partition)
        and _is_expired(group, commit, wall_ms, retention_ms)
    ]


def _is_simple(group: AnyGroup) -> bool:
    return isinstance(group, ClassicGroup) and group.protocol_type is None


def _is_settled(group: AnyGroup) -> bool:
    """Whether it is known what the members read."""
    return not isinstance(group, ClassicGroup) or group.state is GroupState.STABLE


def _is_expired(
    group: AnyGroup, commit: OffsetCommitValue, wall_ms: int, retention_ms: int
) -> bool:
    if commit.expire_timestamp != NO_EXPIRY:
        return wall_ms >= commit.expire_timestamp
    is_left_by_members = is_empty(group) and not _is_simple(group)
    # Old records of a group do not say since when it is empty.
    is_known_since = is_left_by_members and group.state_since_ms >= 0
    since_ms = group.state_since_ms if is_known_since else commit.commit_timestamp
    return wall_ms - since_ms >= retention_ms
