"""TxnOffsetCommit: store how far a group has read, if a transaction is committed."""

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
class TxnOffsetCommitRequestPartition(Struct):
    """The commit for one partition."""

    partition_index: int = wire(INT32, "The partition.")
    committed_offset: int = wire(INT64, "The next offset the group wants to read.")
    committed_leader_epoch: int = wire(
        INT32,
        "The leader epoch of the last record read, -1 if it is not known.",
        since=2,
        default=-1,
        ignorable=True,
    )
    committed_metadata: str | None = wire(
        STRING, "Whatever the member wants to keep beside the offset.", null_since=0
    )


@struct
class TxnOffsetCommitRequestTopic(Struct):
    """The commits for one topic."""

    name: str = wire(STRING, "The topic.")
    partitions: Sequence[TxnOffsetCommitRequestPartition] = wire(
        array(TxnOffsetCommitRequestPartition), "What to commit, by partition."
    )


@message(versions=(0, 5), flexible_since=3, straight_line=True)
class TxnOffsetCommitRequest(Message):
    """Stores how far a group has read, once the producer's transaction is committed."""

    transactional_id: str = wire(STRING, "The transactional id.")
    group_id: str = wire(STRING, "The name of the group.")
    producer_id: int = wire(INT64, "The producer id in use.")
    producer_epoch: int = wire(INT16, "Its epoch.")
    generation_id: int = wire(
        INT32,
        "The generation the member believes it is in; -1 for commits from outside the group.",
        since=3,
        default=-1,
    )
    member_id: str = wire(STRING, "The id the coordinator gave the member.", since=3, default="")
    group_instance_id: str | None = wire(
        STRING,
        "The name of a static member, which survives its restarts; null for a dynamic one.",
        since=3,
        null_since=3,
        default=None,
    )
    topics: Sequence[TxnOffsetCommitRequestTopic] = wire(
        array(TxnOffsetCommitRequestTopic), "What to commit, by topic."
    )


@struct
class TxnOffsetCommitResponsePartition(Struct):
    """The outcome for one partition."""

    partition_index: int = wire(INT32, "The partition.")
    error_code: int = wire(INT16, "What went wrong; 0 is nothing.", default=0)


@struct
class TxnOffsetCommitResponseTopic(Struct):
    """The outcome for one topic."""

    name: str = wire(STRING, "The topic.")
    partitions: Sequence[TxnOffsetCommitResponsePartition] = wire(
        array(TxnOffsetCommitResponsePartition), "The outcome, by partition."
    )


@message(versions=(0, 5), flexible_since=3, straight_line=True)
class TxnOffsetCommitResponse(Message):
    """Says which commits are in the transaction."""

    throttle_time_ms: int = wire(
        INT32,
        "How long the client is asked to hold back, in milliseconds; 0 is not at all.",
        default=0,
    )
    topics: Sequence[TxnOffsetCommitResponseTopic] = wire(
        array(TxnOffsetCommitResponseTopic), "The outcome, by topic."
    )
