"""A group becomes one of the other kind when somebody of that kind comes.

At once if it has no members, and with them if it may (`migration.py`). Its commits stay. Its number
goes on: no generation or epoch comes up twice under one name.
"""

from tidemark.partitions.state_machines.groups.consumer.group import ConsumerGroup
from tidemark.partitions.state_machines.groups.consumer.member import JOINING_EPOCH
from tidemark.partitions.state_machines.groups.consumer.records import tombstones
from tidemark.partitions.state_machines.groups.consumer.targets import Topics
from tidemark.partitions.state_machines.groups.effects import NothingMore, Turn
from tidemark.partitions.state_machines.groups.group import ClassicGroup
from tidemark.partitions.state_machines.groups.kinds import AnyGroup, is_dead, is_empty
from tidemark.partitions.state_machines.groups.migration import upgraded
from tidemark.partitions.state_machines.groups.requests import ConsumerHeartbeat
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.consumer_offsets import GroupMetadataKey


def as_consumer_group(
    group: AnyGroup | None, request: ConsumerHeartbeat, topics: Topics, turn: Turn
) -> ConsumerGroup:
    """The group, as one of the consumer protocol; a new one for a member that joins.

    Raises `RequestError` if it is not, and cannot become one now.
    """
    if group is not None and is_dead(group):
        raise RequestError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "the group is being deleted")
    if isinstance(group, ConsumerGroup):
        return group
    if request.epoch != JOINING_EPOCH:
        raise RequestError(ErrorCode.UNKNOWN_MEMBER_ID, "the group has no such member")
    if group is None:
        return ConsumerGroup(request.group_id, wall_ms=turn.at.wall_ms)
    if not is_empty(group):
        return upgraded(group, topics, turn)
    converted = ConsumerGroup(group.id, wall_ms=turn.at.wall_ms, epoch=group.generation)
    # Its first record takes the place of what the log has of the former group.
    converted.recording.forget([GroupMetadataKey(group=group.id), *group.leftovers])
    return converted


def as_classic_group(group: ConsumerGroup, turn: Turn) -> ClassicGroup:
    """An empty group of the consumer protocol as one of the classic protocol."""
    # What is on its way to the log is its last: nothing is to follow the tombstones.
    group.is_dead = True
    turn.effects.replies += group.recording.end_all(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    records = tombstones(group)
    converted = ClassicGroup(group.id, wall_ms=turn.at.wall_ms)
    if records:
        # If this is lost, the former group is still in the log, before what this one writes: of
        # two kinds of group under one name, a coordinator that takes over believes the later.
        turn.persist(records, NothingMore())
        converted.leftovers = frozenset(key for key, _ in records)
    converted.generation = group.epoch
    return converted
