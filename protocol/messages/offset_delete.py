"""OffsetDelete: delete single commits of a group."""

from collections.abc import Sequence

from tidemark.protocol.schema import (
    INT16,
    INT32,
    STRING,
    Message,
    Struct,
    array,
    message,
    struct,
    wire,
)


@struct
class OffsetDeleteRequestPartition(Struct):
    """The commit of one partition."""

    partition_index: int = wire(INT32, "The partition.")


@struct
class OffsetDeleteRequestTopic(Struct):
    """The commits to delete in one topic."""

    name: str = wire(STRING, "The topic.")
    partitions: Sequence[OffsetDeleteRequestPartition] = wire(
        array(OffsetDeleteRequestPartition), "The commits to delete, by partition."
    )


@message(versions=(0, 0), straight_line=True)
class OffsetDeleteRequest(Message):
    """Deletes single commits of a group."""

    group_id: str = wire(STRING, "The name of the group.")
    topics: Sequence[OffsetDeleteRequestTopic] = wire(
        array(OffsetDeleteRequestTopic), "The commits to delete, by topic."
    )


@struct
class OffsetDeleteResponsePartition(Struct):
    """The outcome for one partition."""

    partition_index: int = wire(INT32, "The partition.")
    error_code: int = wire(INT16, "What went wrong; 0 is nothing.", default=0)


@struct
class OffsetDeleteResponseTopic(Struct):
    """The outcome for one topic."""

    name: str = wire(STRING, "The topic.")
    partitions: Sequence[OffsetDeleteResponsePartition] = wire(
        array(OffsetDeleteResponsePartition), "The outcome, by partition."
    )


@message(versions=(0, 0), straight_line=True)
class OffsetDeleteResponse(Message):
    """Says which commits were deleted."""

    error_code: int = wire(
        INT16, "What went wrong with the whole request; 0 is nothing.", default=0
    )
    throttle_time_ms: int = wire(
        INT32,
        "How long the client is asked to hold back, in milliseconds; 0 is not at all.",
        default=0,
    )
    topics: Sequence[OffsetDeleteResponseTopic] = wire(
        array(OffsetDeleteResponseTopic), "The outcome, by topic."
    )
