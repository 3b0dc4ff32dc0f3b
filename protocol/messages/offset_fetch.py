"""OffsetFetch: how far groups have read."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from tidemark.protocol.schema import (
    BOOL,
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
class OffsetFetchRequestTopic(Struct):
    """The partitions asked for in one topic."""

    name: str = wire(STRING, "The topic.")
    partition_indexes: Sequence[int] = wire(array(INT32), "The partitions.")


@struct
class OffsetFetchRequestTopics(Struct):
    """The partitions asked for in one topic."""

    name: str = wire(STRING, "The topic.", until=NAMES_UNTIL, default="", ignorable=True)
    topic_id: UUID = wire(
        UUID16, "The topic's id.", since=NAMES_UNTIL + 1, default=ZERO_UUID, ignorable=True
    )
    partition_indexes: Sequence[int] = wire(array(INT32), "The partitions.")


@struct
class OffsetFetchRequestGroup(Struct):
    """What is asked of one group."""

    group_id: str = wire(STRING, "The name of the group.")
    member_id: str | None = wire(
        STRING,
        "The member that asks, in groups whose members have epochs; else null.",
        since=9,
        null_since=9,
        default=None,
        ignorable=True,
    )
    member_epoch: int = wire(
        INT32, "The epoch of that member, -1 for none.", since=9, default=-1, ignorable=True
    )
    topics: Sequence[OffsetFetchRequestTopics] | None = wire(
        array(OffsetFetchRequestTopics),
        "The partitions asked for; null asks for all that have a commit.",
        null_since=0,
    )


@message(versions=(1, 10), flexible_since=6, straight_line=True)
class OffsetFetchRequest(Message):
    """Asks how far groups have read: one group up to version 7, several from version 8."""

    group_id: str = wire(STRING, "The name of the group.", until=7, default="")
    topics: Sequence[OffsetFetchRequestTopic] | None = wire(
        array(OffsetFetchRequestTopic),
        "The partitions asked for; null asks for all that have a commit.",
        until=7,
        null_since=2,
        default=(),
    )
    groups: Sequence[OffsetFetchRequestGroup] = wire(
        array(OffsetFetchRequestGroup), "The groups asked for.", since=8, default=()
    )
    require_stable: bool = wire(
        BOOL,
        "Whether to refuse while a transaction that commits offsets is open.",
        since=7,
        default=False,
    )


@struct
class OffsetFetchResponsePartition(Struct):
    """The commit for one partition."""

    partition_index: int = wire(INT32, "The partition.")
    committed_offset: int = wire(
        INT64, "The next offset the group wants to read, -1 if there is no commit."
    )
    committed_leader_epoch: int = wire(
        INT32,
        "The leader epoch stored with it, -1 if there is none.",
        since=5,
        default=-1,
        ignorable=True,
    )
    metadata: str | None = wire(STRING, "What the member stored beside the offset.", null_since=0)
    error_code: int = wire(INT16, "What went wrong; 0 is nothing.", default=0)


@struct
class OffsetFetchResponseTopic(Struct):
    """The commits for one topic."""

    name: str = wire(STRING, "The topic.")
    partitions: Sequence[OffsetFetchResponsePartition] = wire(
        array(OffsetFetchResponsePartition), "The commits, by partition."
    )


@struct
class OffsetFetchResponsePartitions(Struct):
    """The commit for one partition."""

    partition_index: int = wire(INT32, "The partition.")
    committed_offset: int = wire(
        INT64, "The next offset the group wants to read, -1 if there is no commit."
    )
    committed_leader_epoch: int = wire(
        INT32, "The leader epoch stored with it, -1 if there is none.", default=-1
    )
    metadata: str | None = wire(STRING, "What the member stored beside the offset.", null_since=0)
    error_code: int = wire(INT16, "What went wrong; 0 is nothing.", default=0)


@struct
class OffsetFetchResponseTopics(Struct):
    """The commits for one topic."""

    name: str = wire(STRING, "The topic.", until=NAMES_UNTIL, default="", ignorable=True)
    topic_id: UUID = wire(
        UUID16, "The topic's id.", since=NAMES_UNTIL + 1, default=ZERO_UUID, ignorable=True
    )
    partitions: Sequence[OffsetFetchResponsePartitions] = wire(
        array(OffsetFetchResponsePartitions), "The commits, by partition."
    )


@struct
class OffsetFetchResponseGroup(Struct):
    """The commits of one group."""

    group_id: str = wire(STRING, "The name of the group.")
    topics: Sequence[OffsetFetchResponseTopics] = wire(
        array(OffsetFetchResponseTopics), "The group's commits, by topic."
    )
    error_code: int = wire(INT16, "What went wrong with the group; 0 is nothing.", default=0)


@message(versions=(1, 10), flexible_since=6, straight_line=True)
class OffsetFetchResponse(Message):
    """The commits that were found."""

    throttle_time_ms: int = wire(
        INT32,
        "How long the client is asked to hold back, in milliseconds; 0 is not at all.",
        since=3,
        default=0,
        ignorable=True,
    )
    topics: Sequence[OffsetFetchResponseTopic] = wire(
        array(OffsetFetchResponseTopic), "The group's commits, by topic.", until=7, default=()
    )
    error_code: int = wire(
        INT16,
        "What went wrong with the group; 0 is nothing.",
        since=2,
        until=7,
        default=0,
        ignorable=True,
    )
    groups: Sequence[OffsetFetchResponseGroup] = wire(
        array(OffsetFetchResponseGroup), "The commits, by group.", since=8, default=()
    )
