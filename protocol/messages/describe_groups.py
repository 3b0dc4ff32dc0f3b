"""DescribeGroups: the state and the members of groups."""

from collections.abc import Sequence
from typing import Final

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

NOT_ASKED: Final = -(2**31)
"""The authorized operations of a client that did not ask for them."""


@message(versions=(0, 6), flexible_since=5, straight_line=True)
class DescribeGroupsRequest(Message):
    """Asks for the state and the members of groups."""

    groups: Sequence[str] = wire(array(STRING), "The groups asked for.")
    include_authorized_operations: bool = wire(
        BOOL, "Whether to say what the client may do with each group.", since=3, default=False
    )


@struct
class DescribedGroupMember(Struct):
    """A member of a group."""

    member_id: str = wire(STRING, "The id the coordinator gave the member.")
    group_instance_id: str | None = wire(
        STRING,
        "The name of a static member, which survives its restarts; null for a dynamic one.",
        since=4,
        null_since=4,
        default=None,
        ignorable=True,
    )
    client_id: str = wire(STRING, "What the member's client calls itself.")
    client_host: str = wire(STRING, "The address the member connects from.")
    member_metadata: bytes = wire(
        BYTES, "What the member said of itself under the protocol in use."
    )
    member_assignment: bytes = wire(BYTES, "What the leader assigned to it.")


@struct
class DescribedGroup(Struct):
    """A group."""

    error_code: int = wire(INT16, "What went wrong; 0 is nothing.", default=0)
    error_message: str | None = wire(
        STRING, "What went wrong, in words.", since=6, null_since=6, default=None
    )
    group_id: str = wire(STRING, "The name of the group.")
    group_state: str = wire(
        STRING,
        "Where the group is in its life: `Empty`, `PreparingRebalance`, `CompletingRebalance`, "
        "`Stable` or `Dead`.",
    )
    protocol_type: str = wire(
        STRING, "The kind of group: `consumer` for consumers, others for others."
    )
    protocol_data: str = wire(STRING, "The assignment protocol in use, empty if there is none.")
    members: Sequence[DescribedGroupMember] = wire(array(DescribedGroupMember), "Its members.")
    authorized_operations: int = wire(
        INT32,
        "What the client may do with the group, a bit each; the smallest int32 if it was not "
        "asked.",
        since=3,
        default=NOT_ASKED,
    )


@message(versions=(0, 6), flexible_since=5, straight_line=True)
class DescribeGroupsResponse(Message):
    """The groups that were asked for."""

    throttle_time_ms: int = wire(
        INT32,
        "How long the client is asked to hold back, in milliseconds; 0 is not at all.",
        since=1,
        default=0,
        ignorable=True,
    )
    groups: Sequence[DescribedGroup] = wire(array(DescribedGroup), "The groups.")
