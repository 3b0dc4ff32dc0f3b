"""DeleteTopics."""

from collections.abc import Sequence
from uuid import UUID

from tidemark.protocol.schema import (
    INT16,
    INT32,
    STRING,
    UUID16,
    ZERO_UUID,
    Message,
    Struct,
    array,
    message,
    struct,
    wire,
)


@struct
class DeleteTopicState(Struct):
    """A topic to delete."""

    name: str | None = wire(
        STRING, "The topic's name; null to delete by id.", null_since=0, default=None
    )
    topic_id: UUID = wire(
        UUID16, "The topic's id; all zeros when it is not known.", default=ZERO_UUID
    )


@message(versions=(1, 6), flexible_since=4, straight_line=True)
class DeleteTopicsRequest(Message):
    """Deletes topics: by name up to version 5, by name or id from version 6."""

    topics: Sequence[DeleteTopicState] = wire(
        array(DeleteTopicState), "The topics to delete.", since=6, default=()
    )
    topic_names: Sequence[str] = wire(
        array(STRING), "Which topics to delete, by name.", until=5, default=(), ignorable=True
    )
    timeout_ms: int = wire(INT32, "How long the broker may take, in milliseconds.")


@struct
class DeletableTopicResult(Struct):
    """The outcome for one topic."""

    name: str | None = wire(
        STRING, "The topic; null when an id that was given is not known.", null_since=6
    )
    topic_id: UUID = wire(
        UUID16,
        "The topic's id; all zeros when it is not known.",
        since=6,
        default=ZERO_UUID,
        ignorable=True,
    )
    error_code: int = wire(INT16, "What went wrong; 0 is nothing.", default=0)
    error_message: str | None = wire(
        STRING, "What went wrong, in words.", since=5, null_since=5, default=None, ignorable=True
    )


@message(versions=(1, 6), flexible_since=4, straight_line=True)
class DeleteTopicsResponse(Message):
    """Says which topics were deleted."""

    throttle_time_ms: int = wire(
        INT32,
        "How long the client is asked to hold back, in milliseconds; 0 is not at all.",
        default=0,
    )
    responses: Sequence[DeletableTopicResult] = wire(
        array(DeletableTopicResult), "The outcome, by topic."
    )
