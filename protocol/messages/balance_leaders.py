"""BalanceLeaders: even out the cluster's leaders now, or say what that would do, and why.

An API of Tidemark's own.
"""

from collections.abc import Sequence

from tidemark.protocol.schema import (
    BOOL,
    FLOAT64,
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


@message(versions=(0, 0), flexible_since=0)
class BalanceLeadersRequest(Message):
    """Asks for a plan that makes the leaders even, and for it to be carried out."""

    dry_run: bool = wire(BOOL, "Whether nothing is to be moved.", default=False)
    now: bool = wire(
        BOOL,
        "Whether not to wait for partitions whose leader has just changed, nor for brokers that "
        "have just started.",
        default=False,
    )
    timeout_ms: int = wire(
        INT32, "How long to wait for the answer, in milliseconds.", default=30_000
    )


@struct
class PlannedMove(Struct):
    """One leader to be moved."""

    topic: str = wire(STRING, "The topic.")
    partition: int = wire(INT32, "The partition.")
    source: int = wire(INT32, "The broker that leads it.")
    target: int = wire(INT32, "The broker that is to lead it.")
    step: int = wire(INT32, "Moves of one step are worth it together only.")
    gain: float = wire(FLOAT64, "What the step takes off the unevenness.")
    reason: str = wire(STRING, "Why, in a sentence.")


@struct
class RefusedMove(Struct):
    """What is not done. One for all partitions that it is true of for the same reason."""

    reason: str = wire(STRING, "The kind of reason.")
    sentence: str = wire(STRING, "Why, in a sentence.")
    target: int = wire(INT32, "Where they do not go; -1: it is about them alone.", default=-1)
    topic: str | None = wire(
        STRING, "The topic of the one that it hurts most.", null_since=0, default=None
    )
    partition: int = wire(INT32, "Its partition.", default=-1)
    partitions: int = wire(INT32, "How many it is about.")


@struct
class BalancedBroker(Struct):
    """A broker before and after the plan."""

    node_id: int = wire(INT32, "The broker.")
    role: str = wire(
        STRING, "`takes` leaders, is `left alone`, or is `emptied` because it is to lead nothing."
    )
    leaders_before: int = wire(INT32, "How many partitions it leads.")
    leaders_after: int = wire(INT32, "How many it would lead.")
    share_before: float = wire(FLOAT64, "Its share of the traffic, from 0 to 1.")
    share_after: float = wire(FLOAT64, "What that would be.")


@struct
class UnevennessTerm(Struct):
    """A term of the sum that the plan makes smaller."""

    name: str = wire(STRING, "What is to be even.")
    weight: float = wire(FLOAT64, "How much it counts; -1: before everything else.")
    before: float = wire(FLOAT64, "How uneven it is.")
    after: float = wire(FLOAT64, "How uneven it would be.")


@message(versions=(0, 0), flexible_since=0)
class BalanceLeadersResponse(Message):
    """The whole plan. Not all of it begins at once: only so many leaders are on the move."""

    error_code: int = wire(INT16, "Why there is no plan; 0 is nothing.", default=0)
    error_message: str | None = wire(STRING, "The same in a sentence.", null_since=0, default=None)
    is_enabled: bool = wire(
        BOOL, "Whether the cluster balances its leaders by itself.", default=True
    )
    terms: Sequence[UnevennessTerm] = wire(array(UnevennessTerm), "The unevenness.", default=())
    brokers: Sequence[BalancedBroker] = wire(array(BalancedBroker), "The brokers.", default=())
    moves: Sequence[PlannedMove] = wire(array(PlannedMove), "The moves, in order.", default=())
    refusals: Sequence[RefusedMove] = wire(array(RefusedMove), "What is not moved.", default=())
