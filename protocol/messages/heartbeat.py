"""Heartbeat: a member of a group is alive."""

from tidemark.protocol.schema import (
    INT16,
    INT32,
    STRING,
    Message,
    message,
    wire,
)


@message(versions=(0, 4), flexible_since=4)
class HeartbeatRequest(Message):
    """Says that a member is alive."""

    group_id: str = wire(STRING, "The name of the group.")
    generation_id: int = wire(INT32, "The generation the member believes it is in.")
    member_id: str = wire(STRING, "The id the coordinator gave the member.")
    group_instance_id: str | None = wire(
        STRING,
        "The name of a static member, which survives its restarts; null for a dynamic one.",
        since=3,
        null_since=3,
        default=None,
    )


@message(versions=(0, 4), flexible_since=4)
class HeartbeatResponse(Message):
    """Says whether the member's generation still stands."""

    throttle_time_ms: int = wire(
        INT32,
        "How long the client is asked to hold back, in milliseconds; 0 is not at all.",
        since=1,
        default=0,
        ignorable=True,
    )
    error_code: int = wire(INT16, "What went wrong; 0 is nothing.", default=0)
