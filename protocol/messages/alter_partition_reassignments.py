"""AlterPartitionReassignments: have other brokers hold partitions, or stop that."""

from collections.abc import Sequence

from tidemark.protocol.schema import (
    BOOL,
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
class ReassignablePartition(Struct):
    """A partition, and who is to hold it."""

    partition_index: int = wire(INT32, "The partition.")
    replicas: Sequence[int] | None = wire(
        array(INT32),
        "The brokers that are to hold it, the preferred leader first; null takes back what was "
        "asked for before and has not come true.",
        null_since=0,
        default=None,
    )


@struct
class ReassignableTopic(Struct):
    """A topic with partitions to be moved."""

    name: str = wire(STRING, "The topic.")
    partitions: Sequence[ReassignablePartition] = wire(
        array(ReassignablePartition), "Its partitions, each by itself."
    )


@message(versions=(0, 1), flexible_since=0, straight_line=True)
class AlterPartitionReassignmentsRequest(Message):
    """Moves replicas to other brokers, adds some or removes some, while the partition serves."""

    timeout_ms: int = wire(
        INT32,
        "How long the broker may take to write it down, in milliseconds; moving takes longer.",
        default=60000,
    )
    allow_replication_factor_change: bool = wire(
        BOOL,
        "Whether a partition may get more or fewer replicas than it has.",
        since=1,
        default=True,
    )
    topics: Sequence[ReassignableTopic] = wire(array(ReassignableTopic), "What is to be moved.")


@struct
class ReassignablePartitionResponse(Struct):
    """The outcome for one partition."""

    partition_index: int = wire(INT32, "The partition.")
    error_code: int = wire(INT16, "What went wrong; 0 is nothing.", default=0)
    error_message: str | None = wire(
        STRING, "What went wrong, in words.", null_since=0, default=None
    )


@struct
class ReassignableTopicResponse(Struct):
    """The outcome for one topic."""

    name: str = wire(STRING, "The topic.")
    partitions: Sequence[ReassignablePartitionResponse] = wire(
        array(ReassignablePartitionResponse), "The outcome, by partition."
    )


@message(versions=(0, 1), flexible_since=0, straight_line=True)
class AlterPartitionReassignmentsResponse(Message):
    """Says what is being moved from now on."""

    throttle_time_ms: int = wire(
        INT32,
        "How long the client is asked to hold back, in milliseconds; 0 is not at all.",
        default=0,
    )
    allow_replication_factor_change: bool = wire(
        BOOL,
        "Whether the number of replicas might be changed, as was asked.",
        since=1,
        default=True,
        ignorable=True,
    )
    error_code: int = wire(INT16, "What went wrong with all of it; 0 is nothing.", default=0)
    error_message: str | None = wire(
        STRING, "What went wrong with all of it, in words.", null_since=0, default=None
    )
    responses: Sequence[ReassignableTopicResponse] = wire(
        array(ReassignableTopicResponse), "The outcome, by topic.", default=()
    )
