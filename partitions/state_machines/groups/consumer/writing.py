"""Handing out what has changed in a group to be written, and the answers that hang on it."""

from collections.abc import Sequence

from tidemark.partitions.state_machines.groups.consumer.group import ConsumerGroup
from tidemark.partitions.state_machines.groups.consumer.records import changed_records
from tidemark.partitions.state_machines.groups.effects import (
    GroupRecorded,
    LogRecord,
    Reply,
    Turn,
)
from tidemark.partitions.state_machines.groups.requests import Answer
from tidemark.partitions.state_machines.token import Token
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.messages.consumer_group_records import (
    ConsumerGroupCurrentMemberAssignmentKey,
)


def answer(group: ConsumerGroup, token: Token, said: Answer, turn: Turn) -> None:
    """Answer once all that the group has come to is durable; at once if it is."""
    recording = group.recording
    if group.is_dead:
        turn.reply(token, said)
        return
    if not recording.answer(Reply(token, said), rests_on_changes=recording.is_touched):
        turn.reply(token, said)
    write(group, turn)


def write(group: ConsumerGroup, turn: Turn) -> None:
    """Write what has changed, unless a write is under way: then what has changed goes after it."""
    recording = group.recording
    if not recording.is_touched or recording.is_under_way or group.is_dead:
        return
    records = changed_records(group)
    if records:
        recording.begin(records)
        turn.persist(records, GroupRecorded(group))
    else:
        turn.effects.replies += recording.nothing_to_write()


def written(
    group: ConsumerGroup, records: Sequence[LogRecord], error: ErrorCode, turn: Turn
) -> None:
    """The group's write is durable, or (`error`) it could not be written."""
    _begin_revocations(group, records, turn)
    turn.effects.replies += group.recording.end(records, error)
    # After a failure only for somebody who asks: a log that refuses is not to be asked for ever.
    if error is ErrorCode.NONE or group.recording.has_waiting:
        write(group, turn)


def _begin_revocations(group: ConsumerGroup, records: Sequence[LogRecord], turn: Turn) -> None:
    """Who is to give something up has all of its time from when it can be told so; where that could
    not be written, from the next attempt on."""
    of_members = (
        key.member_id
        for key, _ in records
        if isinstance(key, ConsumerGroupCurrentMemberAssignmentKey)
    )
    for member_id in of_members:
        if group.revocations.pop(member_id, None) is not None:
            timeout_ms = group.members[member_id].rebalance_timeout_ms
            group.expect_revocation(member_id, turn.at.ticks_ms + timeout_ms)
