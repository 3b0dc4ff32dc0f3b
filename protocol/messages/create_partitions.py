"""CreatePartitions: give topics more partitions."""

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
class CreatePartitionsAssignment(Struct):
    """Where the replicas of a new partition go."""

    broker_ids: Sequence[int] = wire(array(INT32), "The brokers that get a replica.")


@struct
class CreatePartitionsTopic(Struct):
    """A topic to grow."""

    name: str = wire(STRING, "The topic.")
    count: int = wire(INT32, "How many partitions it is to have in all.")
    assignments: Sequence[CreatePartitionsAssignment] | None = wire(
        array(CreatePartitionsAssignment),
        "Which brokers get the replicas of the new partitions; null leaves it to the broker.",
        null_since=0,
    )


@message(versions=(0, 3), flexible_since=2, straight_line=True)
class CreatePartitionsRequest(Message):
    """Gives topics more partitions."""

    topics: Sequence[CreatePartitionsTopic] = wire(array(CreatePartitionsTopic), "What to grow.")
    timeout_ms: int = wire(INT32, "How long the broker may take, in milliseconds.")
    validate_only: bool = wire(BOOL, "Whether to check only, and change nothing.")


@struct
class CreatePartitionsTopicResult(Struct):
    """The outcome for one topic."""

    name: str = wire(STRING, "The topic.")
    error_code: int = wire(INT16, "What went wrong; 0 is nothing.", default=0)
    error_message: str | None = wire(
        STRING, "What went wrong, in words.", null_since=0, default=None
    )


@message(versions=(0, 3), flexible_since=2, straight_line=True)
class CreatePartitionsResponse(Message):
    """Says which topics have grown."""

    throttle_time_ms: int = wire(
        INT32,
        "How long the client is asked to hold back, in milliseconds; 0 is not at all.",
        default=0,
    )
    results: Sequence[CreatePartitionsTopicResult] = wire(
        array(CreatePartitionsTopicResult), "The outcome, by topic."
    )
