"""ListGroups: the groups of a coordinator."""

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


@message(versions=(0, 5), flexible_since=3, straight_line=True)
class ListGroupsRequest(Message):
    """Asks for the groups that this broker coordinates."""

    states_filter: Sequence[str] = wire(
        array(STRING), "The states to list; empty for all.", since=4, default=()
    )
    types_filter: Sequence[str] = wire(
        array(STRING), "The types of group to list; empty for all.", since=5, default=()
    )


@struct
class ListedGroup(Struct):
    """A group."""

    group_id: str = wire(STRING, "The name of the group.")
    protocol_type: str = wire(
        STRING, "The kind of group: `consumer` for consumers, others for others."
    )
    group_state: str = wire(
        STRING,
        "Where the group is in its life, as in DescribeGroups.",
        since=4,
        default="",
        ignorable=True,
    )
    group_type: str = wire(
        STRING,
        "The rebalance protocol the group uses: `classic` or `consumer`.",
        since=5,
        default="",
        ignorable=True,
    )


@message(versions=(0, 5), flexible_since=3, straight_line=True)
class ListGroupsResponse(Message):
    """The groups that this broker coordinates."""

    throttle_time_ms: int = wire(
        INT32,
        "How long the client is asked to hold back, in milliseconds; 0 is not at all.",
        since=1,
        default=0,
        ignorable=True,
    )
    error_code: int = wire(INT16, "What went wrong; 0 is nothing.", default=0)
    groups: Sequence[ListedGroup] = wire(array(ListedGroup), "The groups.")
