"""ListTransactions: the transactional ids that a broker coordinates."""

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


@message(versions=(0, 2), flexible_since=0, straight_line=True)
class ListTransactionsRequest(Message):
    """Asks one broker for the transactional ids that it coordinates."""

    state_filters: Sequence[str] = wire(
        array(STRING), "Only those in one of these states; all if there are none.", default=()
    )
    producer_id_filters: Sequence[int] = wire(
        array(INT64), "Only those of one of these producer ids; all if there are none.", default=()
    )
    duration_filter: int = wire(
        INT64,
        "Only those whose transaction is open for longer, in milliseconds; all if it is negative.",
        since=1,
        default=-1,
    )
    transactional_id_pattern: str | None = wire(
        STRING,
        "Only those whose whole name matches this regular expression; all if it is empty or null.",
        since=2,
        null_since=2,
        default=None,
    )


@struct
class TransactionState(Struct):
    """One transactional id."""

    transactional_id: str = wire(STRING, "The transactional id.")
    producer_id: int = wire(INT64, "The producer id in use.")
    transaction_state: str = wire(
        STRING, "Empty, Ongoing, PrepareCommit, PrepareAbort, CompleteCommit or CompleteAbort."
    )


@message(versions=(0, 2), flexible_since=0, straight_line=True)
class ListTransactionsResponse(Message):
    """The transactional ids."""

    throttle_time_ms: int = wire(
        INT32,
        "How long the client is asked to hold back, in milliseconds; 0 is not at all.",
        default=0,
    )
    error_code: int = wire(INT16, "What went wrong; 0 is nothing.", default=0)
    unknown_state_filters: Sequence[str] = wire(
        array(STRING), "States of the request that there are none of.", default=()
    )
    transaction_states: Sequence[TransactionState] = wire(
        array(TransactionState), "The transactional ids.", default=()
    )
