"""JoinGroup: enter a group's next generation."""

from collections.abc import Sequence

from tidemark.protocol.schema import (
    BOOL,
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
class JoinGroupRequestProtocol(Struct):
    """An assignment protocol the member can use."""

    name: str = wire(STRING, "The protocol's name.")
    metadata: bytes = wire(
        BYTES, "What the leader of the group should know of the member; opaque to the broker."
    )


@message(versions=(0, 9), flexible_since=6)
class JoinGroupRequest(Message):
    """Enters a group, or enters its next generation."""

    group_id: str = wire(STRING, "The name of the group.")
    session_timeout_ms: int = wire(
        INT32, "How long the member may be silent before it is taken for dead, in milliseconds."
    )
    rebalance_timeout_ms: int = wire(
        INT32,
        "How long the member may take to join again in a rebalance, in milliseconds; -1 for as "
        "long as its session timeout.",
        since=1,
        default=-1,
        ignorable=True,
    )
    member_id: str = wire(
        STRING, "The id the coordinator gave the member; empty on its first join."
    )
    group_instance_id: str | None = wire(
        STRING,
        "The name of a static member, which survives its restarts; null for a dynamic one.",
        since=5,
        null_since=5,
        default=None,
    )
    protocol_type: str = wire(
        STRING, "The kind of group: `consumer` for consumers, others for others."
    )
    protocols: Sequence[JoinGroupRequestProtocol] = wire(
        array(JoinGroupRequestProtocol),
        "The assignment protocols the member can use, the one it likes best first.",
    )
    reason: str | None = wire(
        STRING,
        "Why the member joins, for the broker's log.",
        since=8,
        null_since=8,
        default=None,
        ignorable=True,
    )


@struct
class JoinGroupResponseMember(Struct):
    """A member, as its leader sees it."""

    member_id: str = wire(STRING, "The id the coordinator gave the member.")
    group_instance_id: str | None = wire(
        STRING,
        "The name of a static member, which survives its restarts; null for a dynamic one.",
        since=5,
        null_since=5,
        default=None,
        ignorable=True,
    )
    metadata: bytes = wire(BYTES, "What the member said of itself under the chosen protocol.")


@message(versions=(0, 9), flexible_since=6)
class JoinGroupResponse(Message):
    """The generation that was formed; its leader also gets the members."""

    throttle_time_ms: int = wire(
        INT32,
        "How long the client is asked to hold back, in milliseconds; 0 is not at all.",
        since=2,
        default=0,
        ignorable=True,
    )
    error_code: int = wire(INT16, "What went wrong; 0 is nothing.", default=0)
    generation_id: int = wire(INT32, "The generation, -1 if there was an error.", default=-1)
    protocol_type: str | None = wire(
        STRING,
        "The kind of group: `consumer` for consumers, others for others.",
        since=7,
        null_since=7,
        default=None,
        ignorable=True,
    )
    protocol_name: str | None = wire(
        STRING,
        "The assignment protocol that was chosen; an empty string says none before version 7.",
        null_since=7,
        null_as="",
    )
    leader: str = wire(STRING, "The member that is to assign the partitions.")
    skip_assignment: bool = wire(
        BOOL, "Whether the leader should leave the assignment as it is.", since=9, default=False
    )
    member_id: str = wire(STRING, "The id the coordinator gave the member.")
    members: Sequence[JoinGroupResponseMember] = wire(
        array(JoinGroupResponseMember), "The members, to the leader; empty to the others."
    )
