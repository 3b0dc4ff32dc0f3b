"""LeaveGroup: members leave a group."""

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
class MemberIdentity(Struct):
    """A member that leaves."""

    member_id: str = wire(STRING, "The id the coordinator gave the member.")
    group_instance_id: str | None = wire(
        STRING,
        "The name of a static member, which survives its restarts; null for a dynamic one.",
        null_since=0,
        default=None,
    )
    reason: str | None = wire(
        STRING,
        "Why it leaves, for the broker's log.",
        since=5,
        null_since=5,
        default=None,
        ignorable=True,
    )


@message(versions=(0, 5), flexible_since=4, straight_line=True)
class LeaveGroupRequest(Message):
    """Leaves a group: one member up to version 2, several from version 3."""

    group_id: str = wire(STRING, "The name of the group.")
    member_id: str = wire(STRING, "The id the coordinator gave the member.", until=2, default="")
    members: Sequence[MemberIdentity] = wire(
        array(MemberIdentity), "The members that leave.", since=3, default=()
    )


@struct
class MemberResponse(Struct):
    """The outcome for one member."""

    member_id: str = wire(STRING, "The id the coordinator gave the member.")
    group_instance_id: str | None = wire(
        STRING,
        "The name of a static member, which survives its restarts; null for a dynamic one.",
        null_since=0,
    )
    error_code: int = wire(INT16, "What went wrong; 0 is nothing.", default=0)


@message(versions=(0, 5), flexible_since=4, straight_line=True)
class LeaveGroupResponse(Message):
    """Says which members have left."""

    throttle_time_ms: int = wire(
        INT32,
        "How long the client is asked to hold back, in milliseconds; 0 is not at all.",
        since=1,
        default=0,
        ignorable=True,
    )
    error_code: int = wire(
        INT16, "What went wrong with the whole request; 0 is nothing.", default=0
    )
    members: Sequence[MemberResponse] = wire(
        array(MemberResponse), "The outcome, by member.", since=3, default=()
    )
