"""SyncGroup: hand out the assignment of a generation."""

from collections.abc import Sequence

from tidemark.protocol.schema import (
    BYTES,
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
class SyncGroupRequestAssignment(Struct):
    """The assignment of one member."""

    member_id: str = wire(STRING, "The member it is for.")
    assignment: bytes = wire(BYTES, "The assignment; opaque to the broker.")


@message(versions=(0, 5), flexible_since=4)
class SyncGroupRequest(Message):
    """Waits for the member's assignment; the leader brings everybody's."""

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
    protocol_type: str | None = wire(
        STRING,
        "The kind of group: `consumer` for consumers, others for others.",
        since=5,
        null_since=5,
        default=None,
        ignorable=True,
    )
    protocol_name: str | None = wire(
        STRING,
        "The assignment protocol that all members share.",
        since=5,
        null_since=5,
        default=None,
        ignorable=True,
    )
    assignments: Sequence[SyncGroupRequestAssignment] = wire(
        array(SyncGroupRequestAssignment),
        "The assignments, from the leader; empty from the others.",
    )


@message(versions=(0, 5), flexible_since=4)
class SyncGroupResponse(Message):
    """The member's assignment."""

    throttle_time_ms: int = wire(
        INT32,
        "How long the client is asked to hold back, in milliseconds; 0 is not at all.",
        since=1,
        default=0,
        ignorable=True,
    )
    error_code: int = wire(INT16, "What went wrong; 0 is nothing.", default=0)
    protocol_type: str | None = wire(
        STRING,
        "The kind of group: `consumer` for consumers, others for others.",
        since=5,
        null_since=5,
        default=None,
        ignorable=True,
    )
    protocol_name: str | None = wire(
        STRING,
        "The assignment protocol that all members share.",
        since=5,
        null_since=5,
        default=None,
        ignorable=True,
    )
    assignment: bytes = wire(BYTES, "The assignment, as the leader made it.")
