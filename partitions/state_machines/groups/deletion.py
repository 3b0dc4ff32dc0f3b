"""DeleteGroups and OffsetDelete: what an administrator may take away, and from which groups."""

from collections.abc import Iterable

from tidemark.partitions.state_machines.groups.effects import GroupDeleted, ReplyWhenStored, Turn
from tidemark.partitions.state_machines.groups.group import Group
from tidemark.partitions.state_machines.groups.offsets import OffsetTable
from tidemark.partitions.state_machines.groups.records import group_tombstone, offset_tombstone
from tidemark.partitions.state_machines.groups.requests import (
    DeleteAnswer,
    DeleteOffsets,
    GroupState,
)
from tidemark.partitions.state_machines.groups.subscriptions import CONSUMER, subscribed_topics
from tidemark.partitions.state_machines.token import Token
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.types import TopicPartition


def delete_group(group: Group, offsets: OffsetTable, token: Token, turn: Turn) -> None:
    """Delete an empty group with all its commits (trap G13)."""
    if group.state is GroupState.DEAD:
        turn.reply(token, DeleteAnswer(error=ErrorCode.GROUP_ID_NOT_FOUND))
    elif group.state is not GroupState.EMPTY:
        turn.reply(token, DeleteAnswer(error=ErrorCode.NON_EMPTY_GROUP))
    else:
        bury(group, offsets.partitions(group.id), token, turn)


def bury(
    group: Group, partitions: Iterable[TopicPartition], token: Token | None, turn: Turn
) -> None:
    """Write the group's tombstones. It is dead from now on, and gone once they are durable."""
    group.pending.clear()
    group.enter(GroupState.DEAD, turn.at.wall_ms)
    tombstones = [offset_tombstone(group.id, partition) for partition in partitions]
    turn.persist(
        [*tombstones, group_tombstone(group.id)], GroupDeleted(group, token, DeleteAnswer())
    )


def delete_offsets(
    group: Group, request: DeleteOffsets, offsets: OffsetTable, token: Token, turn: Turn
) -> None:
    """Delete single commits: of topics that no member reads."""
    if group.state is GroupState.DEAD:
        turn.reply(token, DeleteAnswer(error=ErrorCode.GROUP_ID_NOT_FOUND))
        return
    if group.members and group.protocol_type != CONSUMER:
        turn.reply(token, DeleteAnswer(error=ErrorCode.NON_EMPTY_GROUP))
        return
    refused = {
        partition: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
        for partition in request.partitions
        if group.members and _may_read(group, partition.topic)
    }
    existing = set(offsets.partitions(group.id))
    tombstones = [
        offset_tombstone(group.id, partition)
        for partition in dict.fromkeys(request.partitions)
        if partition in existing and partition not in refused
    ]
    answer = DeleteAnswer(refused_partitions=refused)
    if tombstones:
        turn.persist(tombstones, ReplyWhenStored(token, answer))
    else:
        turn.reply(token, answer)


def _may_read(group: Group, topic: str) -> bool:
    topics = subscribed_topics(group)
    return topics is None or topic in topics
