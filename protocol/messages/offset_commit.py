"""OffsetCommit: store how far a group has read."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from tidemark.protocol.schema import (
    INT16,
    INT32,
    INT64,
    STRING,
    UUID16,
    ZERO_UUID,
    Message,
    Struct,
    array,
    message,
    struct,
    wire,
)

NAMES_UNTIL: Final = 9
"""The last version in which topics go by their names; from the next on, by their ids."""


@struct
class OffsetCommitRequestPartition(Struct):
    """The commit for one partition."""

    partition_index: int = wire(INT32, "The partition.")
    committed_offset: int = wire(INT64, "The next offset the group wants to read.")
    committed_leader_epoch: int = wire(
        INT32,
        "The leader epoch of the last record read, -1 if it is not known.",
        since=6,
        default=-1,
        ignorable=True,
    )
    committed_metadata: str | None = wire(
        STRING, "Whatever the member wants to keep beside the offset.", null_since=0
    )


@struct
class OffsetCommitRequestTopic(Struct):
    """The commits for one topic."""

    name: str = wire(STRING, "The topic.", until=NAMES_UNTIL, default="", ignorable=True)
    topic_id: UUID = wire(
        UUID16, "The topic's id.", since=NAMES_UNTIL + 1, default=ZERO_UUID, ignorable=True
    )
    partitions: Sequence[OffsetCommitRequestPartition] = wire(
        array(OffsetCommitRequestPartition), "What to commit, by partition."
    )


@message(versions=(2, 10), flexible_since=8, straight_line=True)
class OffsetCommitRequest(Message):
    """Stores how far a group has read."""

    group_id: str = wire(STRING, "The name of the group.")
    generation_id_or_member_epoch: int = wire(
        INT32,
        "The generation the member believes it is in; -1 for commits from outside the group.",
        default=-1,
    )
    member_id: str = wire(STRING, "The id the coordinator gave the member.")
    group_instance_id: str | None = wire(
        STRING,
        "The name of a static member, which survives its restarts; null for a dynamic one.",
        since=7,
        null_since=7,
        default=None,
    )
    retention_time_ms: int = wire(
        INT64,
        "How long to keep the commit, in milliseconds; -1 leaves it to the broker.",
        until=4,
        default=-1,
        ignorable=True,
    )
    topics: Sequence[OffsetCommitRequestTopic] = wire(
        array(OffsetCommitRequestTopic), "What to commit, by topic."
    )


@struct
class OffsetCommitResponsePartition(Struct):
    """The outcome for one partition."""

    partition_index: int = wire(INT32, "The partition.")
    error_code: int = wire(INT16, "What went wrong; 0 is nothing.", default=0)


@struct
class OffsetCommitResponseTopic(Struct):
    """The outcome for one topic."""

    name: str = wire(STRING, "The topic.", until=NAMES_UNTIL, default="", ignorable=True)
    topic_id: UUID = wire(
        UUID16, "The topic's id.", since=NAMES_UNTIL + 1, default=ZERO_UUID, ignorable=True
    )
    partitions: Sequence[OffsetCommitResponsePartition] = wire(
        array(OffsetCommitResponsePartition), "The outcome, by partition."
    )


@message(versions=(2, 10), flexible_since=8, straight_line=True)
class OffsetCommitResponse(Message):
    """Says which commits are stored."""

    throttle_time_ms: int = wire(
        INT32,
        "How long the client is asked to hold back, in milliseconds; 0 is not at all.",
        since=3,
        default=0,
        ignorable=True,
    )
    topics: Sequence[OffsetCommitResponseTopic] = wire(
        array(OffsetCommitResponseTopic), "The outcome, by topic."
    )
