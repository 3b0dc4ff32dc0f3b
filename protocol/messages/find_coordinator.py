"""FindCoordinator: the broker that coordinates a group."""

from collections.abc import Sequence

from tidemark.protocol.schema import (
    INT8,
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


@message(versions=(0, 5), flexible_since=3)
class FindCoordinatorRequest(Message):
    """Asks which broker coordinates a group or a transactional id."""

    key: str = wire(STRING, "The group or the transactional id.", until=3, default="")
    key_type: int = wire(
        INT8, "What the keys are: 0 groups, 1 transactional ids.", since=1, default=0
    )
    coordinator_keys: Sequence[str] = wire(
        array(STRING), "The groups or the transactional ids.", since=4, default=()
    )


@struct
class Coordinator(Struct):
    """The coordinator of one key."""

    key: str = wire(STRING, "The group or the transactional id.")
    node_id: int = wire(INT32, "The broker's number.")
    host: str = wire(STRING, "The host name or address to connect to.")
    port: int = wire(INT32, "The port to connect to.")
    error_code: int = wire(INT16, "What went wrong; 0 is nothing.", default=0)
    error_message: str | None = wire(
        STRING, "What went wrong, in words.", null_since=0, default=None
    )


@message(versions=(0, 5), flexible_since=3)
class FindCoordinatorResponse(Message):
    """The coordinator: one up to version 3, one for each key from version 4."""

    throttle_time_ms: int = wire(
        INT32,
        "How long the client is asked to hold back, in milliseconds; 0 is not at all.",
        since=1,
        default=0,
        ignorable=True,
    )
    error_code: int = wire(INT16, "What went wrong; 0 is nothing.", until=3, default=0)
    error_message: str | None = wire(
        STRING,
        "What went wrong, in words.",
        since=1,
        until=3,
        null_since=1,
        default=None,
        ignorable=True,
    )
    node_id: int = wire(INT32, "The broker's number.", until=3, default=0)
    host: str = wire(STRING, "The host name or address to connect to.", until=3, default="")
    port: int = wire(INT32, "The port to connect to.", until=3, default=0)
    coordinators: Sequence[Coordinator] = wire(
        array(Coordinator), "The coordinators, one for each key.", since=4, default=()
    )
