"""AddPartitionsToTxn: partitions that are about to get records of a transaction."""

from collections.abc import Sequence

from tidemark.protocol.schema import (
    BOOL,
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
class AddPartitionsToTxnTopic(Struct):
    """Partitions of one topic."""

    name: str = wire(STRING, "The topic.")
    partitions: Sequence[int] = wire(array(INT32), "The partitions.")


@struct
class AddPartitionsToTxnTransaction(Struct):
    """One transaction, as a partition's leader asks about it."""

    transactional_id: str = wire(STRING, "The transactional id.", since=4)
    producer_id: int = wire(INT64, "The producer id in use.", since=4)
    producer_epoch: int = wire(INT16, "Its epoch.", since=4)
    verify_only: bool = wire(
        BOOL,
        "Whether to ask only if the partitions are in the transaction, and not to add them.",
        since=4,
        default=False,
    )
    topics: Sequence[AddPartitionsToTxnTopic] = wire(
        array(AddPartitionsToTxnTopic), "The partitions.", since=4
    )


@message(versions=(0, 5), flexible_since=3, straight_line=True)
class AddPartitionsToTxnRequest(Message):
    """Puts partitions into a transaction: of a client up to version 3, of a broker from 4."""

    transactions: Sequence[AddPartitionsToTxnTransaction] = wire(
        array(AddPartitionsToTxnTransaction),
        "The transactions that a broker asks about.",
        since=4,
        default=(),
    )
    v3_and_below_transactional_id: str = wire(STRING, "The transactional id.", until=3, default="")
    v3_and_below_producer_id: int = wire(INT64, "The producer id in use.", until=3, default=0)
    v3_and_below_producer_epoch: int = wire(INT16, "Its epoch.", until=3, default=0)
    v3_and_below_topics: Sequence[AddPartitionsToTxnTopic] = wire(
        array(AddPartitionsToTxnTopic), "The partitions.", until=3, default=()
    )


@struct
class AddPartitionsToTxnPartitionResult(Struct):
    """The outcome for one partition."""

    partition_index: int = wire(INT32, "The partition.")
    partition_error_code: int = wire(INT16, "What went wrong; 0 is nothing.", default=0)


@struct
class AddPartitionsToTxnTopicResult(Struct):
    """The outcome for one topic."""

    name: str = wire(STRING, "The topic.")
    results_by_partition: Sequence[AddPartitionsToTxnPartitionResult] = wire(
        array(AddPartitionsToTxnPartitionResult), "The outcome, by partition."
    )


@struct
class AddPartitionsToTxnResult(Struct):
    """The outcome for one transaction."""

    transactional_id: str = wire(STRING, "The transactional id.", since=4)
    topic_results: Sequence[AddPartitionsToTxnTopicResult] = wire(
        array(AddPartitionsToTxnTopicResult), "The outcome, by topic.", since=4
    )


@message(versions=(0, 5), flexible_since=3, straight_line=True)
class AddPartitionsToTxnResponse(Message):
    """Says which partitions are in the transaction."""

    throttle_time_ms: int = wire(
        INT32,
        "How long the client is asked to hold back, in milliseconds; 0 is not at all.",
        default=0,
    )
    error_code: int = wire(
        INT16,
        "What went wrong with the request as a whole; 0 is nothing.",
        since=4,
        default=0,
        ignorable=True,
    )
    results_by_transaction: Sequence[AddPartitionsToTxnResult] = wire(
        array(AddPartitionsToTxnResult), "The outcome, by transaction.", since=4, default=()
    )
    results_by_topic_v3_and_below: Sequence[AddPartitionsToTxnTopicResult] = wire(
        array(AddPartitionsToTxnTopicResult), "The outcome, by topic.", until=3, default=()
    )
