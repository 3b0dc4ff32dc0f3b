"""What the two kinds of groups have in common: the classic protocol's, and the consumer protocol's.

A group is of the kind that its members speak, and may become one of the other kind while it has
none: its commits are its own either way.
"""

from collections.abc import Iterable
from typing import TypeAlias

from tidemark.partitions.state_machines.groups.consumer import records as consumer_records
from tidemark.partitions.state_machines.groups.consumer.group import (
    ConsumerGroup,
    ConsumerGroupState,
)
from tidemark.partitions.state_machines.groups.consumer.targets import subscribed_names
from tidemark.partitions.state_machines.groups.effects import LogRecord
from tidemark.partitions.state_machines.groups.group import ClassicGroup
from tidemark.partitions.state_machines.groups.records import group_tombstone, offset_tombstone
from tidemark.partitions.state_machines.groups.requests import GroupState
from tidemark.partitions.state_machines.groups.subscriptions import CONSUMER, subscribed_topics
from tidemark.protocol.types import TopicPartition

AnyGroup: TypeAlias = ClassicGroup | ConsumerGroup


def is_dead(group: AnyGroup) -> bool:
    """Whether its tombstones are on their way to the log."""
    return group.is_dead if isinstance(group, ConsumerGroup) else group.state is GroupState.DEAD


def is_empty(group: AnyGroup) -> bool:
    """Whether it lives, and has no members."""
    if isinstance(group, ConsumerGroup):
        return group.state is ConsumerGroupState.EMPTY
    return group.state is GroupState.EMPTY


def is_left(group: AnyGroup) -> bool:
    """Whether it is empty, and nobody is about to come in either."""
    return is_empty(group) and (isinstance(group, ConsumerGroup) or not group.pending)


def is_unused(group: AnyGroup) -> bool:
    """Whether it is not worth remembering, but for its commits."""
    return isinstance(group, ClassicGroup) and group.is_unused


def reads_topics(group: AnyGroup) -> bool:
    """Whether it is a group of consumers: of others, nobody knows what their members do."""
    return isinstance(group, ConsumerGroup) or group.protocol_type == CONSUMER


def topics_read(group: AnyGroup) -> frozenset[str] | None:
    """All topics that members read; None if that cannot be told."""
    if isinstance(group, ConsumerGroup):
        return subscribed_names(group)
    return subscribed_topics(group)


def kill(group: AnyGroup, wall_ms: int) -> None:
    """From now on it is dead: nobody gets in."""
    if isinstance(group, ConsumerGroup):
        group.is_dead = True
    else:
        group.pending.clear()
        group.enter(GroupState.DEAD, wall_ms)


def revive(group: AnyGroup, wall_ms: int) -> None:
    """The log did not take its tombstones: it is there, and empty, after all."""
    if isinstance(group, ConsumerGroup):
        group.is_dead = False
        group.recording.forget(group.recording.keys)
    else:
        group.enter(GroupState.EMPTY, wall_ms)


def tombstones(group: AnyGroup, partitions: Iterable[TopicPartition]) -> list[LogRecord]:
    """What takes the group out of the log, with its commits for `partitions`."""
    commits = [offset_tombstone(group.id, partition) for partition in partitions]
    if isinstance(group, ConsumerGroup):
        return [*commits, *consumer_records.tombstones(group)]
    # What took the former group out of the log may have failed.
    former = [LogRecord(key, None) for key in sorted(group.leftovers, key=repr)]
    return [*commits, *former, group_tombstone(group.id)]
