"""DescribeTopicPartitions: the partitions of topics, a page at a time."""

from collections.abc import Sequence
from uuid import UUID

from tidemark.protocol.messages.metadata import NOT_ASKED
from tidemark.protocol.schema import (
    BOOL,
    INT16,
    INT32,
    STRING,
    UUID16,
    ZERO_UUID,
    Message,
    Struct,
    array,
    message,
    nested,
    struct,
    wire,
)


@struct
class TopicRequest(Struct):
    """A topic asked about."""

    name: str = wire(STRING, "The topic's name.")


@struct
class Cursor(Struct):
    """Where a page begins."""

    topic_name: str = wire(STRING, "The first topic of the page.")
    partition_index: int = wire(INT32, "Its first partition on the page.")


@message(versions=(0, 0), flexible_since=0, straight_line=True)
class DescribeTopicPartitionsRequest(Message):
    """Asks for the partitions of some topics, or of all."""

    topics: Sequence[TopicRequest] = wire(
        array(TopicRequest), "The topics; none asks for all of them."
    )
    response_partition_limit: int = wire(
        INT32, "The most partitions that the answer may have.", default=2000
    )
    cursor: Cursor | None = wire(
        nested(Cursor), "Where to begin; null is at the beginning.", null_since=0, default=None
    )


@struct
class DescribeTopicPartitionsResponsePartition(Struct):
    """A partition."""

    error_code: int = wire(INT16, "What went wrong; 0 is nothing.", default=0)
    partition_index: int = wire(INT32, "The partition.")
    leader_id: int = wire(INT32, "The broker that leads it, -1 if there is none.")
    leader_epoch: int = wire(INT32, "The leader epoch.", default=-1, ignorable=True)
    replica_nodes: Sequence[int] = wire(array(INT32), "The brokers that hold it.")
    isr_nodes: Sequence[int] = wire(array(INT32), "Those that hold all that is committed.")
    eligible_leader_replicas: Sequence[int] | None = wire(
        array(INT32),
        "Those that may lead though they are not in sync: none here.",
        null_since=0,
        default=None,
    )
    last_known_elr: Sequence[int] | None = wire(
        array(INT32), "Those that might once have: none here.", null_since=0, default=None
    )
    offline_replicas: Sequence[int] = wire(
        array(INT32), "Those that are not there.", ignorable=True
    )


@struct
class DescribeTopicPartitionsResponseTopic(Struct):
    """A topic, with as many of its partitions as are on the page."""

    error_code: int = wire(INT16, "What went wrong; 0 is nothing.", default=0)
    name: str | None = wire(STRING, "The topic's name.", null_since=0)
    topic_id: UUID = wire(UUID16, "The topic's id.", default=ZERO_UUID, ignorable=True)
    is_internal: bool = wire(
        BOOL, "Whether the topic is the brokers' own.", default=False, ignorable=True
    )
    partitions: Sequence[DescribeTopicPartitionsResponsePartition] = wire(
        array(DescribeTopicPartitionsResponsePartition), "Its partitions."
    )
    topic_authorized_operations: int = wire(
        INT32, "What the client may do with the topic, as bits.", default=NOT_ASKED
    )


@message(versions=(0, 0), flexible_since=0, straight_line=True)
class DescribeTopicPartitionsResponse(Message):
    """A page of partitions."""

    throttle_time_ms: int = wire(
        INT32,
        "How long the client is asked to hold back, in milliseconds; 0 is not at all.",
        default=0,
        ignorable=True,
    )
    topics: Sequence[DescribeTopicPartitionsResponseTopic] = wire(
        array(DescribeTopicPartitionsResponseTopic), "The topics of the page."
    )
    next_cursor: Cursor | None = wire(
        nested(Cursor), "Where the next page begins; null is the end.", null_since=0, default=None
    )
