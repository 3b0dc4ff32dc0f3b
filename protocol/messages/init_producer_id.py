"""InitProducerId: the identity of an idempotent producer."""

from tidemark.protocol.schema import (
    INT16,
    INT32,
    INT64,
    STRING,
    Message,
    message,
    wire,
)


@message(versions=(0, 5), flexible_since=2)
class InitProducerIdRequest(Message):
    """Gets an idempotent producer its id, or a transactional one its next epoch."""

    transactional_id: str | None = wire(
        STRING,
        "The producer's transactional id; null for a producer that is only idempotent.",
        null_since=0,
    )
    transaction_timeout_ms: int = wire(
        INT32, "How long a transaction may stay open before it is aborted, in milliseconds."
    )
    producer_id: int = wire(
        INT64,
        "The id the producer has already and wants the next epoch of; -1 if it has none.",
        since=3,
        default=-1,
    )
    producer_epoch: int = wire(
        INT16, "The epoch it has already, -1 if it has none.", since=3, default=-1
    )


@message(versions=(0, 5), flexible_since=2)
class InitProducerIdResponse(Message):
    """The producer's id and epoch."""

    throttle_time_ms: int = wire(
        INT32,
        "How long the client is asked to hold back, in milliseconds; 0 is not at all.",
        default=0,
    )
    error_code: int = wire(INT16, "What went wrong; 0 is nothing.", default=0)
    producer_id: int = wire(INT64, "The id, -1 if there was an error.", default=-1)
    producer_epoch: int = wire(INT16, "The epoch to produce with.")
