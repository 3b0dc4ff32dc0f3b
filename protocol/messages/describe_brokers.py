"""DescribeBrokers: what each broker leads and holds, what is wanted of it, and how far that is.

An API of Tidemark's own.
"""

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


@message(versions=(0, 0), flexible_since=0)
class DescribeBrokersRequest(Message):
    """Asks about brokers."""

    node_ids: Sequence[int] | None = wire(
        array(INT32), "The brokers; null for all.", null_since=0, default=None
    )
    timeout_ms: int = wire(
        INT32, "How long to wait for the answer, in milliseconds.", default=30_000
    )


@struct
class DescribedBroker(Struct):
    """One broker."""

    node_id: int = wire(INT32, "The broker.")
    rack: str | None = wire(STRING, "Its rack.", null_since=0, default=None)
    is_alive: bool = wire(BOOL, "Whether it is heard.")
    up_ms: int = wire(INT64, "For how many milliseconds it has been; -1 if it is not.")
    state: str = wire(
        STRING,
        "What is wanted of it: `active`, `draining` or, once that is done, `drained`; "
        "`decommissioning` or, once it holds nothing, `decommissioned`.",
    )
    is_controller: bool = wire(BOOL, "Whether it leads the cluster's metadata.")
    leaders: int = wire(INT32, "Partitions that it leads.")
    replicas: int = wire(INT32, "Replicas that it holds or is to hold.")
    size_bytes: int = wire(INT64, "Their size, as far as it is known.")
    bytes_in_per_second: int = wire(INT64, "What producers write to what it leads, smoothed.")
    bytes_out_per_second: int = wire(INT64, "What clients read of what it leads, smoothed.")
    leaders_coming: int = wire(INT32, "Leaders that are on their way to it.")
    leaders_going: int = wire(INT32, "Leaders that are on their way to others.")
    replicas_going: int = wire(INT32, "Replicas that are on their way to others.")
    left_ms: int = wire(
        INT64, "How much longer it takes until what is wanted of it is so; -1 if nobody knows."
    )
    stuck: Sequence[str] = wire(
        array(STRING), "What stands in the way, a sentence each.", default=()
    )


@message(versions=(0, 0), flexible_since=0)
class DescribeBrokersResponse(Message):
    """The brokers, by number."""

    error_code: int = wire(INT16, "Why there is no answer; 0 is nothing.", default=0)
    error_message: str | None = wire(STRING, "The same in a sentence.", null_since=0, default=None)
    brokers: Sequence[DescribedBroker] = wire(array(DescribedBroker), "The brokers.", default=())
