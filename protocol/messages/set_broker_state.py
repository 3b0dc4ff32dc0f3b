"""SetBrokerState: drain a broker, take its replicas away for good, or have it lead again.

An API of Tidemark's own.
"""

from collections.abc import Sequence

from tidemark.protocol.messages.balance_leaders import RefusedMove
from tidemark.protocol.schema import (
    BOOL,
    INT16,
    INT32,
    INT64,
    STRING,
    Message,
    array,
    message,
    wire,
)


@message(versions=(0, 0), flexible_since=0)
class SetBrokerStateRequest(Message):
    """Says what is wanted of a broker from now on. It outlives the broker's starts."""

    node_id: int = wire(INT32, "The broker.")
    state: str = wire(
        STRING,
        "`active`: it leads like any other; a decommission is given up. `draining`: its leaders "
        "move away, and it leads only what nobody else can. `decommissioning`: its replicas move "
        "away as well.",
    )
    force: bool = wire(
        BOOL,
        "Whether to do it although partitions would be without a majority if it were stopped.",
        default=False,
    )
    dry_run: bool = wire(BOOL, "Whether only to say what it would do.", default=False)
    timeout_ms: int = wire(
        INT32, "How long to wait for the answer, in milliseconds.", default=30_000
    )


@message(versions=(0, 0), flexible_since=0)
class SetBrokerStateResponse(Message):
    """Whether the state is set, and what follows of it."""

    error_code: int = wire(INT16, "Why it is not; 0 is nothing.", default=0)
    error_message: str | None = wire(STRING, "The same in a sentence.", null_since=0, default=None)
    leaders: int = wire(INT32, "Leaders that will move away.", default=0)
    replicas: int = wire(INT32, "Replicas that will move away.", default=0)
    size_bytes: int = wire(INT64, "Bytes that will have to be copied.", default=0)
    refusals: Sequence[RefusedMove] = wire(
        array(RefusedMove),
        "What it costs, or what stands in the way; with any, it is not done unless it is forced.",
        default=(),
    )
