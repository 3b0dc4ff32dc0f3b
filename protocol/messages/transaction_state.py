"""The records of `__transaction_state`: what the coordinator of transactions writes for itself.

Keys and values begin with an int16 version, as those of `__consumer_offsets` do.
"""

from collections.abc import Sequence

from tidemark.protocol import codec
from tidemark.protocol.messages.stored import split_version
from tidemark.protocol.schema import (
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


@message(versions=(0, 0))
class TransactionLogKey(Message):
    """The key of a transactional id."""

    transactional_id: str = wire(STRING, "The transactional id.")


@struct
class PartitionsSchema(Struct):
    """Partitions of one topic."""

    topic: str = wire(STRING, "The topic.")
    partition_ids: Sequence[int] = wire(array(INT32), "The partitions.")


@message(versions=(0, 1), flexible_since=1)
class TransactionLogValue(Message):
    """A transactional id, as it must survive a restart."""

    producer_id: int = wire(INT64, "The producer id in use.")
    previous_producer_id: int = wire(
        INT64,
        "The producer id before, whose epochs ran out; -1 if there is none.",
        since=1,
        tag=0,
        default=-1,
        ignorable=True,
    )
    next_producer_id: int = wire(
        INT64,
        "The producer id after this transaction; -1 if it stays.",
        since=1,
        tag=1,
        default=-1,
        ignorable=True,
    )
    producer_epoch: int = wire(INT16, "The epoch of the producer id.")
    transaction_timeout_ms: int = wire(INT32, "How long a transaction may last, in milliseconds.")
    transaction_status: int = wire(
        INT8,
        "0 empty, 1 ongoing, 2 prepare commit, 3 prepare abort, 4 complete commit, "
        "5 complete abort.",
    )
    transaction_partitions: Sequence[PartitionsSchema] | None = wire(
        array(PartitionsSchema), "The partitions in the transaction.", null_since=0
    )
    transaction_last_update_timestamp_ms: int = wire(
        INT64, "When this was written, in milliseconds since 1970."
    )
    transaction_start_timestamp_ms: int = wire(
        INT64, "When the transaction began, in milliseconds since 1970; -1 if none is open."
    )
    client_transaction_version: int = wire(
        INT16,
        "2 if the client has its epoch raised at each end.",
        since=1,
        tag=2,
        default=0,
        ignorable=True,
    )


def decode_key(data: bytes | memoryview) -> TransactionLogKey | None:
    """Whose record it is; None for a kind of key that is not known here, which is skipped."""
    version, encoded = split_version(data)
    return codec.decode(TransactionLogKey, version, encoded) if version == 0 else None
