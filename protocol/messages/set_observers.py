"""SetObservers: which brokers keep a copy of a partition without a vote. Ours: Kafka has none."""

from collections.abc import Sequence

from tidemark.protocol.schema import (
    INT16,
    INT32,
    STRING,
    Message,
    Struct,
    array,
    message,
    struct,
    wire,
)


@struct
class ObservedPartition(Struct):
    """A partition, and who is to observe it."""

    topic: str = wire(STRING, "The topic.")
    partition: int = wire(INT32, "The partition.")
    observers: Sequence[int] = wire(
        array(INT32), "The brokers that are to observe it; none removes all observers."
    )


@message(versions=(0, 0), flexible_since=0, straight_line=True)
class SetObserversRequest(Message):
    """Names the observers of partitions. What they held that observe no more is removed."""

    partitions: Sequence[ObservedPartition] = wire(
        array(ObservedPartition), "The partitions, each by itself."
    )
    timeout_ms: int = wire(INT32, "How long the request may take, in milliseconds.", default=30_000)


@struct
class ObserversSet(Struct):
    """What became of one partition."""

    topic: str = wire(STRING, "The topic.")
    partition: int = wire(INT32, "The partition.")
    error_code: int = wire(INT16, "Why nothing was changed; 0 if it was.", default=0)
    error_message: str | None = wire(STRING, "The same in words.", null_since=0, default=None)


@message(versions=(0, 0), flexible_since=0, straight_line=True)
class SetObserversResponse(Message):
    """Says what became of each partition, in the order of the request."""

    throttle_time_ms: int = wire(
        INT32,
        "How long the client is asked to hold back, in milliseconds; 0 is not at all.",
        default=0,
    )
    error_code: int = wire(INT16, "Why nothing was tried; 0 if it was.", default=0)
    error_message: str | None = wire(STRING, "The same in words.", null_since=0, default=None)
    partitions: Sequence[ObserversSet] = wire(array(ObserversSet), "The outcomes.", default=())
