"""MoveLeaders: have partitions led by other brokers. Ours: Kafka elects the preferred ones only."""

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
class LeaderMove(Struct):
    """A partition, and the broker that is to lead it."""

    topic: str = wire(STRING, "The topic.")
    partition: int = wire(INT32, "The partition.")
    target: int = wire(INT32, "The broker that is to lead it; one of its replicas.")


@message(versions=(0, 0), flexible_since=0, straight_line=True)
class MoveLeadersRequest(Message):
    """Has partitions led by the brokers that are named, and waits until that is so, or will not
    be."""

    moves: Sequence[LeaderMove] = wire(array(LeaderMove), "The moves, each by itself.")
    reason: str = wire(STRING, "Why, in words for the logs.", default="")
    timeout_ms: int = wire(
        INT32, "What has not happened by then is given up, in milliseconds.", default=30_000
    )
    validate_only: bool = wire(
        BOOL, "Whether to say only what would be refused, and move nothing.", default=False
    )


@struct
class MovedLeader(Struct):
    """What became of one move."""

    topic: str = wire(STRING, "The topic.")
    partition: int = wire(INT32, "The partition.")
    error_code: int = wire(INT16, "Why the leader was not moved; 0 if it was.", default=0)
    error_message: str | None = wire(STRING, "The same in words.", null_since=0, default=None)
    leader: int = wire(INT32, "Who leads now; -1 if nobody is known to.", default=-1)
    deadline_ms: int = wire(
        INT64,
        "Time of day, in milliseconds since 1970, by which the move was to be over; -1 without "
        "one.",
        default=-1,
    )
    attempts: int = wire(INT32, "How often writes were held.", default=0)
    catch_up_us: int = wire(
        INT64, "Until the target had nearly all, in microseconds; writes went on.", default=0
    )
    pause_us: int = wire(INT64, "How long writes were held in all, in microseconds.", default=0)


@message(versions=(0, 0), flexible_since=0, straight_line=True)
class MoveLeadersResponse(Message):
    """Says what became of each move, in the order of the request."""

    throttle_time_ms: int = wire(
        INT32,
        "How long the client is asked to hold back, in milliseconds; 0 is not at all.",
        default=0,
    )
    error_code: int = wire(INT16, "Why nothing was tried; 0 if it was.", default=0)
    error_message: str | None = wire(STRING, "The same in words.", null_since=0, default=None)
    moves: Sequence[MovedLeader] = wire(array(MovedLeader), "The outcomes.", default=())
