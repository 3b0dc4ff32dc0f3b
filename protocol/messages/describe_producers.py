"""DescribeProducers: who writes to partitions, and whose transactions are open in them."""

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
from tidemark.protocol.types import NO_OFFSET, NO_TIMESTAMP_MS


@struct
class TopicRequest(Struct):
    """What is asked about one topic."""

    name: str = wire(STRING, "The topic.")
    partition_indexes: Sequence[int] = wire(array(INT32), "The partitions.")


@message(versions=(0, 0), flexible_since=0, straight_line=True)
class DescribeProducersRequest(Message):
    """Asks a replica of each partition for the producers that it knows of."""

    topics: Sequence[TopicRequest] = wire(array(TopicRequest), "What is asked about, by topic.")


@struct
class ProducerState(Struct):
    """What a partition knows of one producer."""

    producer_id: int = wire(INT64, "Its id.")
    producer_epoch: int = wire(INT32, "Its epoch, as the partition last saw it.")
    last_sequence: int = wire(
        INT32, "The sequence of its last record here; -1 if there is none.", default=-1
    )
    last_timestamp: int = wire(
        INT64,
        "When it last wrote here, in milliseconds since 1970; -1 if that is not known.",
        default=NO_TIMESTAMP_MS,
    )
    coordinator_epoch: int = wire(
        INT32, "The epoch of the coordinator that ended its last transaction here; -1 if none did."
    )
    current_txn_start_offset: int = wire(
        INT64, "Where its open transaction begins; -1 if none is open.", default=NO_OFFSET
    )


@struct
class PartitionResponse(Struct):
    """The producers of one partition."""

    partition_index: int = wire(INT32, "The partition.")
    error_code: int = wire(INT16, "What went wrong; 0 is nothing.", default=0)
    error_message: str | None = wire(STRING, "The same in a sentence.", null_since=0, default=None)
    active_producers: Sequence[ProducerState] = wire(
        array(ProducerState), "The producers that are known."
    )


@struct
class TopicResponse(Struct):
    """The producers of one topic."""

    name: str = wire(STRING, "The topic.")
    partitions: Sequence[PartitionResponse] = wire(
        array(PartitionResponse), "The producers, by partition."
    )


@message(versions=(0, 0), flexible_since=0, straight_line=True)
class DescribeProducersResponse(Message):
    """Says who writes to partitions."""

    throttle_time_ms: int = wire(
        INT32,
        "How long the client is asked to hold back, in milliseconds; 0 is not at all.",
        default=0,
    )
    topics: Sequence[TopicResponse] = wire(array(TopicResponse), "The producers, by topic.")
