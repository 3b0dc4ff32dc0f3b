"""EndTxn: a producer commits its transaction, or aborts it."""

from tidemark.protocol.schema import (
    BOOL,
    INT16,
    INT32,
    INT64,
    STRING,
    Message,
    message,
    wire,
)


@message(versions=(0, 5), flexible_since=3)
class EndTxnRequest(Message):
    """Ends a transaction."""

    transactional_id: str = wire(STRING, "The transactional id.")
    producer_id: int = wire(INT64, "The producer id in use.")
    producer_epoch: int = wire(INT16, "Its epoch.")
    committed: bool = wire(BOOL, "Whether to commit; else it is aborted.")


@message(versions=(0, 5), flexible_since=3)
class EndTxnResponse(Message):
    """The decision is durable; from version 5 with what the producer goes on with."""

    throttle_time_ms: int = wire(
        INT32,
        "How long the client is asked to hold back, in milliseconds; 0 is not at all.",
        default=0,
    )
    error_code: int = wire(INT16, "What went wrong; 0 is nothing.", default=0)
    producer_id: int = wire(
        INT64,
        "The producer id for the next transaction, -1 if there was an error.",
        since=5,
        default=-1,
        ignorable=True,
    )
    producer_epoch: int = wire(
        INT16, "Its epoch, -1 if there was an error.", since=5, default=-1, ignorable=True
    )
