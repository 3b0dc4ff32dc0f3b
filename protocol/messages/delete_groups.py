"""DeleteGroups."""

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


@message(versions=(0, 2), flexible_since=2, straight_line=True)
class DeleteGroupsRequest(Message):
    """Deletes groups that have no members, with their commits."""

    groups_names: Sequence[str] = wire(array(STRING), "The groups to delete.")


@struct
class DeletableGroupResult(Struct):
    """The outcome for one group."""

    group_id: str = wire(STRING, "The name of the group.")
    error_code: int = wire(INT16, "What went wrong; 0 is nothing.", default=0)


@message(versions=(0, 2), flexible_since=2, straight_line=True)
class DeleteGroupsResponse(Message):
    """Says which groups were deleted."""

    throttle_time_ms: int = wire(
        INT32,
        "How long the client is asked to hold back, in milliseconds; 0 is not at all.",
        default=0,
    )
    results: Sequence[DeletableGroupResult] = wire(
        array(DeletableGroupResult), "The outcome, by group."
    )
