"""DeleteGroups and OffsetDelete: what an administrator may take away, and from which groups."""

from collections.abc import Iterable

from tidemark.partitions.state_machines.groups.consumer.group import ConsumerGroup
from tidemark.partitions.state_machines.groups.effects import GroupDeleted, ReplyWhenStored, Turn
from tidemark.partitions.state_machines.groups.kinds import (
    AnyGroup,
    is_dead,
    is_empty,
    kill,
    reads_topics,
    tombstones,
    topics_read,
)
from tidemark.partitions.state_machines.groups.offsets import OffsetTable
from tidemark.partitions.state_machines.groups.records import offset_tombstone
from tidemark.partitions.state_machines.groups.requests import (
    DeleteAnswer,
    DeleteOffsets,
)
from tidemark.partitions.state_machines.token import Token
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.types import TopicPartition


def delete_group(group: AnyGroup, offsets: OffsetTable, token: Token, turn: Turn) -> None:
    """Delete an empty group with all its commits (trap G13)."""
    if is_dead(group):
        turn.reply(token, DeleteAnswer(error=ErrorCode.GROUP_ID_NOT_FOUND))
    elif not is_empty(group):
        turn.reply(token, DeleteAnswer(error=ErrorCode.NON_EMPTY_GROUP))
    else:
        bury(group, offsets.partitions(group.id), token, turn)


def bury(
    group: AnyGroup, partitions: Iterable[TopicPartition], token: Token | None, turn: Turn
) -> None:
    """Write the group's tombstones. It is dead from now on, and gone once they are durable."""
    kill(group, turn.at.wall_ms)
    if isinstance(group, ConsumerGroup):
        # What they wait for, to be told that they have left, is not written any more.
        turn.effects.replies += group.recording.end_all(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    turn.persist(tombstones(group, partitions), GroupDeleted(group, token, DeleteAnswer()))


def delete_offsets(
    group: AnyGroup, request: DeleteOffsets, offsets: OffsetTable, token: Token, turn: Turn
) -> None:
    """Delete the commits for some partitions, as far as no member reads their topics."""
    if is_dead(group):
        turn.reply(token, DeleteAnswer(error=ErrorCode.GROUP_ID_NOT_FOUND))
        return
    if group.members and not reads_topics(group):
        turn.reply(token, DeleteAnswer(error=ErrorCode.NON_EMPTY_GROUP))
        return
    refused = {
        partition: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
        for partition in request.partitions
        if group.members and _may_read(group, partition.topic)
    }
    existing = set(offsets.partitions(group.id))
    records = [
        offset_tombstone(group.id, partition)
        for partition in dict.fromkeys(request.partitions)
        if partition in existing and partition not in refused
    ]
    answer = DeleteAnswer(refused_partitions=refused)
    if records:
        turn.persist(records, ReplyWhenStored(token, answer))
    else:
        turn.reply(token, answer)


def _may_read(group: AnyGroup, topic: str) -> bool:
    topics = topics_read(group)
    return topics is None or topic in topics
