"""ConsumerGroupHeartbeat: all that a member of the consumer protocol is told."""

from collections.abc import Sequence
from uuid import UUID

from tidemark.protocol.schema import (
    INT16,
    INT32,
    STRING,
    UUID16,
    Message,
    Struct,
    array,
    message,
    nested,
    struct,
    wire,
)


@struct
class TopicPartitions(Struct):
    """Partitions of one topic that the member may read."""

    topic_id: UUID = wire(UUID16, "The id of the topic.")
    partitions: Sequence[int] = wire(array(INT32), "The partitions.")


@struct
class Assignment(Struct):
    """All that the member may read now."""

    topic_partitions: Sequence[TopicPartitions] = wire(
        array(TopicPartitions), "The partitions, by topic."
    )


@message(versions=(0, 1), flexible_since=0)
class ConsumerGroupHeartbeatResponse(Message):
    """What the member is to do from now on."""

    throttle_time_ms: int = wire(
        INT32,
        "How long the client is asked to hold back, in milliseconds; 0 is not at all.",
        default=0,
    )
    error_code: int = wire(INT16, "What went wrong; 0 is nothing.", default=0)
    error_message: str | None = wire(
        STRING, "What went wrong, in words.", null_since=0, default=None
    )
    member_id: str | None = wire(STRING, "The member's id.", null_since=0, default=None)
    member_epoch: int = wire(INT32, "The member's epoch from now on.", default=0)
    heartbeat_interval_ms: int = wire(
        INT32, "How long to wait before the next heartbeat, in milliseconds.", default=0
    )
    assignment: Assignment | None = wire(
        nested(Assignment),
        "What the member may read; null if that has not changed.",
        null_since=0,
        default=None,
    )
