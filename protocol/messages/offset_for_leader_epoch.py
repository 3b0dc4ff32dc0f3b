"""OffsetForLeaderEpoch: where leader epochs end."""

from collections.abc import Sequence

from tidemark.protocol.schema import (
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
class OffsetForLeaderPartition(Struct):
    """What is asked of one partition."""

    partition: int = wire(INT32, "The partition.")
    current_leader_epoch: int = wire(
        INT32,
        "The leader epoch the client knows of, to be fenced by; -1 asks for no check.",
        default=-1,
    )
    leader_epoch: int = wire(INT32, "The epoch whose end is asked for.")


@struct
class OffsetForLeaderTopic(Struct):
    """What is asked of one topic."""

    topic: str = wire(STRING, "The topic.")
    partitions: Sequence[OffsetForLeaderPartition] = wire(
        array(OffsetForLeaderPartition), "What is asked, by partition."
    )


@message(versions=(2, 4), flexible_since=4, straight_line=True)
class OffsetForLeaderEpochRequest(Message):
    """Asks where leader epochs end, to find out whether a log was truncated."""

    replica_id: int = wire(
        INT32,
        "The broker number of a follower; -1 for a consumer, -2 for a debugging consumer.",
        since=3,
        default=-2,
        ignorable=True,
    )
    topics: Sequence[OffsetForLeaderTopic] = wire(
        array(OffsetForLeaderTopic), "What is asked, by topic."
    )


@struct
class EpochEndOffset(Struct):
    """The answer for one partition."""

    error_code: int = wire(INT16, "What went wrong; 0 is nothing.", default=0)
    partition: int = wire(INT32, "The partition.")
    leader_epoch: int = wire(
        INT32, "The largest epoch at or below the one asked for; -1 if there is none.", default=-1
    )
    end_offset: int = wire(INT64, "Its end, exclusive; -1 if there is none.", default=-1)


@struct
class OffsetForLeaderTopicResult(Struct):
    """The answers for one topic."""

    topic: str = wire(STRING, "The topic.")
    partitions: Sequence[EpochEndOffset] = wire(array(EpochEndOffset), "The answers, by partition.")


@message(versions=(2, 4), flexible_since=4, straight_line=True)
class OffsetForLeaderEpochResponse(Message):
    """Where the epochs end."""

    throttle_time_ms: int = wire(
        INT32,
        "How long the client is asked to hold back, in milliseconds; 0 is not at all.",
        default=0,
    )
    topics: Sequence[OffsetForLeaderTopicResult] = wire(
        array(OffsetForLeaderTopicResult), "The answers, by topic."
    )
