"""ConfirmLeadership: all that is committed now, for reads that must not be stale. Ours."""

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
class ConfirmTopic(Struct):
    """The partitions of one topic that are asked about."""

    topic: str = wire(STRING, "The topic.")
    partitions: Sequence[int] = wire(array(INT32), "The partitions.")


@message(versions=(0, 0), flexible_since=0, straight_line=True)
class ConfirmLeadershipRequest(Message):
    """Asks the leader of partitions whether it still leads them, and up to where they are
    committed."""

    topics: Sequence[ConfirmTopic] = wire(array(ConfirmTopic), "The partitions, by topic.")
    timeout_ms: int = wire(
        INT32, "How long a majority of the replicas may take, in milliseconds.", default=5_000
    )


@struct
class ConfirmedPartition(Struct):
    """One partition."""

    partition: int = wire(INT32, "The partition.")
    error_code: int = wire(INT16, "Why the leader cannot say; 0 if it can.", default=0)
    error_message: str | None = wire(STRING, "The same in words.", null_since=0, default=None)
    leader_epoch: int = wire(INT32, "The epoch that it leads; -1 if it does not.", default=-1)
    high_watermark: int = wire(
        INT64,
        "Below it is all that was committed by anybody when the request came; -1 if that is not "
        "known.",
        default=-1,
    )


@struct
class ConfirmedTopic(Struct):
    """The partitions of one topic."""

    topic: str = wire(STRING, "The topic.")
    partitions: Sequence[ConfirmedPartition] = wire(array(ConfirmedPartition), "The partitions.")


@message(versions=(0, 0), flexible_since=0, straight_line=True)
class ConfirmLeadershipResponse(Message):
    """Says so once a majority, asked after the request came, knew of no other leader."""

    throttle_time_ms: int = wire(
        INT32,
        "How long the client is asked to hold back, in milliseconds; 0 is not at all.",
        default=0,
    )
    error_code: int = wire(INT16, "Why nothing was tried; 0 if it was.", default=0)
    error_message: str | None = wire(STRING, "The same in words.", null_since=0, default=None)
    topics: Sequence[ConfirmedTopic] = wire(
        array(ConfirmedTopic), "The partitions, in the order of the request.", default=()
    )
