"""DeleteRecords: move the starts of partitions forward."""

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
class DeleteRecordsPartition(Struct):
    """What to delete of one partition."""

    partition_index: int = wire(INT32, "The partition.")
    offset: int = wire(INT64, "The offset below which to delete; -1 for the high watermark.")


@struct
class DeleteRecordsTopic(Struct):
    """What to delete of one topic."""

    name: str = wire(STRING, "The topic.")
    partitions: Sequence[DeleteRecordsPartition] = wire(
        array(DeleteRecordsPartition), "What to delete, by partition."
    )


@message(versions=(0, 2), flexible_since=2, straight_line=True)
class DeleteRecordsRequest(Message):
    """Moves the starts of partitions forward."""

    topics: Sequence[DeleteRecordsTopic] = wire(
        array(DeleteRecordsTopic), "What to delete, by topic."
    )
    timeout_ms: int = wire(INT32, "How long the broker may take, in milliseconds.")


@struct
class DeleteRecordsPartitionResult(Struct):
    """The outcome for one partition."""

    partition_index: int = wire(INT32, "The partition.")
    low_watermark: int = wire(INT64, "The partition's start, -1 if there was an error.")
    error_code: int = wire(INT16, "What went wrong; 0 is nothing.", default=0)


@struct
class DeleteRecordsTopicResult(Struct):
    """The outcome for one topic."""

    name: str = wire(STRING, "The topic.")
    partitions: Sequence[DeleteRecordsPartitionResult] = wire(
        array(DeleteRecordsPartitionResult), "The outcome, by partition."
    )


@message(versions=(0, 2), flexible_since=2, straight_line=True)
class DeleteRecordsResponse(Message):
    """Says where the partitions start now."""

    throttle_time_ms: int = wire(
        INT32,
        "How long the client is asked to hold back, in milliseconds; 0 is not at all.",
        default=0,
    )
    topics: Sequence[DeleteRecordsTopicResult] = wire(
        array(DeleteRecordsTopicResult), "The outcome, by topic."
    )
