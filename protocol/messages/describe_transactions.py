"""DescribeTransactions: what the coordinator knows of transactional ids."""

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


@message(versions=(0, 0), flexible_since=0, straight_line=True)
class DescribeTransactionsRequest(Message):
    """Asks the coordinator of these transactional ids about them."""

    transactional_ids: Sequence[str] = wire(array(STRING), "The transactional ids.")


@struct
class TopicData(Struct):
    """Partitions of one topic."""

    topic: str = wire(STRING, "The topic.")
    partitions: Sequence[int] = wire(array(INT32), "The partitions.")


@struct
class TransactionState(Struct):
    """One transactional id."""

    error_code: int = wire(INT16, "What went wrong; 0 is nothing.", default=0)
    transactional_id: str = wire(STRING, "The transactional id.")
    transaction_state: str = wire(
        STRING,
        "Empty, Ongoing, PrepareCommit, PrepareAbort, CompleteCommit or CompleteAbort.",
        default="",
    )
    transaction_timeout_ms: int = wire(
        INT32, "How long a transaction may last, in milliseconds.", default=0
    )
    transaction_start_time_ms: int = wire(
        INT64,
        "When the open transaction began, in milliseconds since 1970; -1 if none is open.",
    )
    producer_id: int = wire(INT64, "The producer id in use.", default=-1)
    producer_epoch: int = wire(INT16, "Its epoch.", default=-1)
    topics: Sequence[TopicData] = wire(
        array(TopicData),
        "The partitions in the transaction; once it is decided, those without a marker yet.",
        default=(),
    )


@message(versions=(0, 0), flexible_since=0, straight_line=True)
class DescribeTransactionsResponse(Message):
    """What the coordinator knows."""

    throttle_time_ms: int = wire(
        INT32,
        "How long the client is asked to hold back, in milliseconds; 0 is not at all.",
        default=0,
    )
    transaction_states: Sequence[TransactionState] = wire(
        array(TransactionState), "The transactional ids, in the request's order."
    )
