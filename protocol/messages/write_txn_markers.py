"""WriteTxnMarkers: a coordinator has partitions' leaders write how transactions have ended."""

from collections.abc import Sequence

from tidemark.protocol.schema import (
    BOOL,
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
class WritableTxnMarkerTopic(Struct):
    """The partitions of one topic that get the marker."""

    name: str = wire(STRING, "The topic.")
    partition_indexes: Sequence[int] = wire(array(INT32), "The partitions.")


@struct
class WritableTxnMarker(Struct):
    """The end of one transaction."""

    producer_id: int = wire(INT64, "The producer's id.")
    producer_epoch: int = wire(
        INT16,
        "The epoch that the marker carries: the producer's own, or the one that replaces it.",
    )
    transaction_result: bool = wire(BOOL, "Whether it was committed, rather than aborted.")
    topics: Sequence[WritableTxnMarkerTopic] = wire(
        array(WritableTxnMarkerTopic), "Where the marker is to be written, by topic."
    )
    coordinator_epoch: int = wire(
        INT32, "The leader epoch in which the coordinator leads the transaction's partition."
    )
    transaction_version: int = wire(
        INT8,
        "The producer's protocol; from 2 on every end of a transaction raises the epoch, and the "
        "marker's is larger than that of any record before it.",
        since=2,
        default=0,
        ignorable=True,
    )


@message(versions=(1, 2), flexible_since=1, straight_line=True)
class WriteTxnMarkersRequest(Message):
    """Asks partitions' leaders to write how transactions have ended."""

    markers: Sequence[WritableTxnMarker] = wire(array(WritableTxnMarker), "The ends.")


@struct
class WritableTxnMarkerPartitionResult(Struct):
    """The outcome for one partition."""

    partition_index: int = wire(INT32, "The partition.")
    error_code: int = wire(INT16, "What went wrong; 0: the marker is there for good.", default=0)


@struct
class WritableTxnMarkerTopicResult(Struct):
    """The outcome for one topic."""

    name: str = wire(STRING, "The topic.")
    partitions: Sequence[WritableTxnMarkerPartitionResult] = wire(
        array(WritableTxnMarkerPartitionResult), "The outcome, by partition."
    )


@struct
class WritableTxnMarkerResult(Struct):
    """What became of the end of one transaction."""

    producer_id: int = wire(INT64, "The producer's id.")
    topics: Sequence[WritableTxnMarkerTopicResult] = wire(
        array(WritableTxnMarkerTopicResult), "The outcome, by topic."
    )


@message(versions=(1, 2), flexible_since=1, straight_line=True)
class WriteTxnMarkersResponse(Message):
    """Says which markers are there for good."""

    markers: Sequence[WritableTxnMarkerResult] = wire(
        array(WritableTxnMarkerResult), "The outcome, in the order of the request."
    )
