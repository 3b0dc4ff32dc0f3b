"""ConsumerGroupHeartbeat: all that a member of the consumer protocol says, and all it is told."""

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
class ConsumerGroupHeartbeatRequestTopicPartitions(Struct):
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
    topic_partitions: Sequence[ConsumerGroupHeartbeatRequestTopicPartitions] | None = wire(
        array(ConsumerGroupHeartbeatRequestTopicPartitions),
        "The partitions it owns.",
        null_since=0,
        default=None,
    )


@struct
class ConsumerGroupHeartbeatResponseTopicPartitions(Struct):
    """Partitions of one topic that the member may read."""

    topic_id: UUID = wire(UUID16, "The id of the topic.")
    partitions: Sequence[int] = wire(array(INT32), "The partitions.")


@struct
class ConsumerGroupHeartbeatResponseAssignment(Struct):
    """All that the member may read now."""

    topic_partitions: Sequence[ConsumerGroupHeartbeatResponseTopicPartitions] = wire(
        array(ConsumerGroupHeartbeatResponseTopicPartitions), "The partitions, by topic."
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
    assignment: ConsumerGroupHeartbeatResponseAssignment | None = wire(
        nested(ConsumerGroupHeartbeatResponseAssignment),
        "What the member may read; null if that has not changed.",
        null_since=0,
        default=None,
    )
