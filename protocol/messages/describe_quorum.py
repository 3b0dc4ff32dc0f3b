"""DescribeQuorum: who replicates a partition, and how far each has come."""

from collections.abc import Sequence

from tidemark.protocol.schema import (
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
class PartitionData(Struct):
    """A partition asked about."""

    partition_index: int = wire(INT32, "The partition.")


@struct
class TopicData(Struct):
    """The partitions asked about in one topic."""

    topic_name: str = wire(STRING, "The topic.")
    partitions: Sequence[PartitionData] = wire(array(PartitionData), "Its partitions.")


@message(versions=(0, 2), flexible_since=0, straight_line=True)
class DescribeQuorumRequest(Message):
    """Asks who replicates partitions, and how far each replica has come."""

    topics: Sequence[TopicData] = wire(array(TopicData), "The partitions asked about, by topic.")
