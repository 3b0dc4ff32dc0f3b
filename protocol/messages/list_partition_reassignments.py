"""ListPartitionReassignments: which partitions are being moved to other brokers."""

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
class ListPartitionReassignmentsTopics(Struct):
    """Partitions to look at."""

    name: str = wire(STRING, "The topic.")
    partition_indexes: Sequence[int] = wire(array(INT32), "Its partitions.")


@message(versions=(0, 0), flexible_since=0, straight_line=True)
class ListPartitionReassignmentsRequest(Message):
    """Asks what is being moved."""

    timeout_ms: int = wire(INT32, "How long the broker may take, in milliseconds.", default=60000)
    topics: Sequence[ListPartitionReassignmentsTopics] | None = wire(
        array(ListPartitionReassignmentsTopics),
        "Which partitions are asked about; null is all.",
        null_since=0,
        default=None,
    )


@struct
class OngoingPartitionReassignment(Struct):
    """A partition that is being moved."""

    partition_index: int = wire(INT32, "The partition.")
    replicas: Sequence[int] = wire(
        array(INT32), "Who holds it, or is to: those wanted first, then those that are to leave."
    )
    adding_replicas: Sequence[int] = wire(array(INT32), "Who of them is to come.")
    removing_replicas: Sequence[int] = wire(array(INT32), "Who of them is to leave.")


@struct
class OngoingTopicReassignment(Struct):
    """A topic with partitions that are being moved."""

    name: str = wire(STRING, "The topic.")
    partitions: Sequence[OngoingPartitionReassignment] = wire(
        array(OngoingPartitionReassignment), "Those of its partitions."
    )


@message(versions=(0, 0), flexible_since=0, straight_line=True)
class ListPartitionReassignmentsResponse(Message):
    """Says what is being moved, and to where."""

    throttle_time_ms: int = wire(
        INT32,
        "How long the client is asked to hold back, in milliseconds; 0 is not at all.",
        default=0,
    )
    error_code: int = wire(INT16, "What went wrong; 0 is nothing.", default=0)
    error_message: str | None = wire(
        STRING, "What went wrong, in words.", null_since=0, default=None
    )
    topics: Sequence[OngoingTopicReassignment] = wire(
        array(OngoingTopicReassignment), "What is being moved, by topic.", default=()
    )
