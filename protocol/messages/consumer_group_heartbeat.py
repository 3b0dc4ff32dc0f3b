"""ConsumerGroupHeartbeat: all that a member of the consumer protocol says."""

from collections.abc import Sequence
from uuid import UUID

from tidemark.protocol.schema import (
    INT32,
    STRING,
    UUID16,
    Message,
    Struct,
    array,
    message,
    struct,
    wire,
)


@struct
class TopicPartitions(Struct):
    """Partitions of one topic that the member owns."""

    topic_id: UUID = wire(UUID16, "The id of the topic.")
    partitions: Sequence[int] = wire(array(INT32), "The partitions.")


@message(versions=(0, 1), flexible_since=0)
class ConsumerGroupHeartbeatRequest(Message):
    """Joins a group, lives in it, and leaves it. What is null has not changed."""

    group_id: str = wire(STRING, "The name of the group.")
    member_id: str = wire(
        STRING,
        "The member's id, which its client makes up and keeps as long as it lives; in version 0 "
        "it may be empty when it joins, and the coordinator makes it up.",
    )
    member_epoch: int = wire(
        INT32,
        "The member's epoch; 0 to join, -1 to leave, -2 for a static member that will be back.",
    )
    instance_id: str | None = wire(
        STRING,
        "The name of a static member, which survives its restarts.",
        null_since=0,
        default=None,
    )
    rack_id: str | None = wire(STRING, "The member's rack.", null_since=0, default=None)
    rebalance_timeout_ms: int = wire(
        INT32,
        "How long the member may take to give up partitions, in milliseconds; -1 is unchanged.",
        default=-1,
    )
    subscribed_topic_names: Sequence[str] | None = wire(
        array(STRING), "The topics it reads.", null_since=0, default=None
    )
    subscribed_topic_regex: str | None = wire(
        STRING,
        "A regular expression: the topics whose whole name matches are read as well. Empty is "
        "none.",
        since=1,
        null_since=1,
        default=None,
    )
    server_assignor: str | None = wire(
        STRING, "The assignor it would like.", null_since=0, default=None
    )
    topic_partitions: Sequence[TopicPartitions] | None = wire(
        array(TopicPartitions),
        "The partitions it owns.",
        null_since=0,
        default=None,
    )
