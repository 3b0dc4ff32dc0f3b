"""ListOffsets: offsets by timestamp, and the ends of partitions."""

from collections.abc import Sequence

from tidemark.protocol.schema import (
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    Message,
    Struct,
    array,
    message,
    struct,
    wire,
)


@struct
class ListOffsetsPartition(Struct):
    """What to look up in one partition."""

    partition_index: int = wire(INT32, "The partition.")
    current_leader_epoch: int = wire(
        INT32,
        "The leader epoch the client knows of, to be fenced by; -1 asks for no check.",
        since=4,
        default=-1,
        ignorable=True,
    )
    timestamp: int = wire(
        INT64,
        "A time in milliseconds, or -1 for the end, -2 for the start, -3 for the largest "
        "timestamp, -4 for the local start, -5 for the end of what is tiered.",
    )


@struct
class ListOffsetsTopic(Struct):
    """What to look up in one topic."""

    name: str = wire(STRING, "The topic.")
    partitions: Sequence[ListOffsetsPartition] = wire(
        array(ListOffsetsPartition), "The partitions to look in."
    )


@message(versions=(1, 9), flexible_since=6, straight_line=True)
class ListOffsetsRequest(Message):
    """Asks for offsets by timestamp, or for the ends of partitions."""

    replica_id: int = wire(INT32, "The broker number of a follower; -1 for a consumer.")
    isolation_level: int = wire(
        INT8,
        "0 sees everything below the high watermark, 1 only what is committed by transactions.",
        since=2,
        default=0,
    )
    topics: Sequence[ListOffsetsTopic] = wire(array(ListOffsetsTopic), "What to look up.")


@struct
class ListOffsetsPartitionResponse(Struct):
    """What was found in one partition."""

    partition_index: int = wire(INT32, "The partition.")
    error_code: int = wire(INT16, "What went wrong; 0 is nothing.", default=0)
    timestamp: int = wire(
        INT64,
        "The timestamp of the record found; -1 if there is none or an end was asked for.",
        default=-1,
    )
    offset: int = wire(INT64, "The offset found, -1 if there is none.", default=-1)
    leader_epoch: int = wire(
        INT32, "The leader epoch of the record found, -1 if it is not known.", since=4, default=-1
    )


@struct
class ListOffsetsTopicResponse(Struct):
    """What was found in one topic."""

    name: str = wire(STRING, "The topic.")
    partitions: Sequence[ListOffsetsPartitionResponse] = wire(
        array(ListOffsetsPartitionResponse), "What was found, by partition."
    )


@message(versions=(1, 9), flexible_since=6, straight_line=True)
class ListOffsetsResponse(Message):
    """The offsets that were found."""

    throttle_time_ms: int = wire(
        INT32,
        "How long the client is asked to hold back, in milliseconds; 0 is not at all.",
        since=2,
        default=0,
        ignorable=True,
    )
    topics: Sequence[ListOffsetsTopicResponse] = wire(
        array(ListOffsetsTopicResponse), "What was found, by topic."
    )
