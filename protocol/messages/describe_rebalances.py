"""DescribeRebalances: why groups rebalanced, the last few times.

An API of Tidemark's own.
"""

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


@message(versions=(0, 0), flexible_since=0)
class DescribeRebalancesRequest(Message):
    """Asks the groups' coordinator, which remembers since it began to be it."""

    groups: Sequence[str] = wire(array(STRING), "The groups asked for.")


@struct
class DescribedRebalance(Struct):
    """How a generation came about."""

    generation: int = wire(
        INT32, "The generation that it led to; of the consumer protocol, the group's epoch."
    )
    at_ms: int = wire(INT64, "When it began, in milliseconds since 1970.")
    reasons: Sequence[str] = wire(
        array(STRING), "Why: what began it first, then what came while it was under way."
    )
    more_reasons: int = wire(INT32, "How many more there were than are named.", default=0)


@struct
class DescribedRebalances(Struct):
    """The rebalances of one group."""

    error_code: int = wire(INT16, "What went wrong; 0 is nothing.", default=0)
    group_id: str = wire(STRING, "The name of the group.")
    rebalances: Sequence[DescribedRebalance] = wire(
        array(DescribedRebalance), "The last few, the latest last.", default=()
    )


@message(versions=(0, 0), flexible_since=0)
class DescribeRebalancesResponse(Message):
    """The groups that were asked for."""

    groups: Sequence[DescribedRebalances] = wire(array(DescribedRebalances), "The groups.")
