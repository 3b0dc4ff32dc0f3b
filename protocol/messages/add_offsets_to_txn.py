"""AddOffsetsToTxn: a group's offsets are about to be committed in a transaction."""

from tidemark.protocol.schema import (
    INT16,
    INT32,
    INT64,
    STRING,
    Message,
    message,
    wire,
)


@message(versions=(0, 4), flexible_since=3)
class AddOffsetsToTxnRequest(Message):
    """Puts the partition that a group's offsets are kept in into a transaction."""

    transactional_id: str = wire(STRING, "The transactional id.")
    producer_id: int = wire(INT64, "The producer id in use.")
    producer_epoch: int = wire(INT16, "Its epoch.")
    group_id: str = wire(STRING, "The name of the group.")


@message(versions=(0, 4), flexible_since=3)
class AddOffsetsToTxnResponse(Message):
    """Says whether TxnOffsetCommit may follow."""

    throttle_time_ms: int = wire(
        INT32,
        "How long the client is asked to hold back, in milliseconds; 0 is not at all.",
        default=0,
    )
    error_code: int = wire(INT16, "What went wrong; 0 is nothing.", default=0)
