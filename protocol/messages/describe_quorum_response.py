"""DescribeQuorum, the answer. Apart from the request, for both have structs of the same names."""

from collections.abc import Sequence
from uuid import UUID

from tidemark.protocol.schema import (
    INT16,
    INT32,
    INT64,
    STRING,
    UINT16,
    UUID16,
    ZERO_UUID,
    Message,
    Struct,
    array,
    message,
    struct,
    wire,
)
from tidemark.protocol.types import NO_OFFSET, NO_TIMESTAMP_MS


@struct
class ReplicaState(Struct):
    """A replica, as the leader sees it."""

    replica_id: int = wire(INT32, "The broker that has it.")
    replica_directory_id: UUID = wire(
        UUID16, "The id of that broker's data directory.", since=2, default=ZERO_UUID
    )
    log_end_offset: int = wire(INT64, "Where its log ends; -1 if that is not known.")
    last_fetch_timestamp: int = wire(
        INT64,
        "When the leader last sent it something that it took, in milliseconds since 1970; -1 for "
        "the leader itself, and if it is not known.",
        since=1,
        default=NO_TIMESTAMP_MS,
        ignorable=True,
    )
    last_caught_up_timestamp: int = wire(
        INT64,
        "When it last had all that the leader had, in milliseconds since 1970; now for the leader "
        "itself, -1 if it is not known.",
        since=1,
        default=NO_TIMESTAMP_MS,
        ignorable=True,
    )


@struct
class PartitionData(Struct):
    """What the leader of one partition says."""

    partition_index: int = wire(INT32, "The partition.")
    error_code: int = wire(INT16, "What went wrong; 0 is nothing.", default=0)
    error_message: str | None = wire(
        STRING,
        "What went wrong, in words.",
        since=2,
        null_since=2,
        default=None,
        ignorable=True,
    )
    leader_id: int = wire(INT32, "The broker that leads it; -1 if that is not known.", default=-1)
    leader_epoch: int = wire(INT32, "The newest leader epoch that is known.", default=-1)
    high_watermark: int = wire(INT64, "The high watermark.", default=NO_OFFSET)
    current_voters: Sequence[ReplicaState] = wire(
        array(ReplicaState), "The replicas that elect its leader.", default=()
    )
    observers: Sequence[ReplicaState] = wire(
        array(ReplicaState), "The replicas that only follow.", default=()
    )


@struct
class TopicData(Struct):
    """The partitions of one topic."""

    topic_name: str = wire(STRING, "The topic.")
    partitions: Sequence[PartitionData] = wire(array(PartitionData), "Its partitions.")


@struct
class Listener(Struct):
    """Where a broker can be reached."""

    name: str = wire(STRING, "The listener's name.")
    host: str = wire(STRING, "The host name or address to connect to.")
    port: int = wire(UINT16, "The port to connect to.")


@struct
class Node(Struct):
    """A broker that has one of the replicas."""

    node_id: int = wire(INT32, "Its number.")
    listeners: Sequence[Listener] = wire(array(Listener), "Where it can be reached.")


@message(versions=(0, 2), flexible_since=0)
class DescribeQuorumResponse(Message):
    """Says who replicates the partitions."""

    error_code: int = wire(
        INT16, "What went wrong with the whole request; 0 is nothing.", default=0
    )
    error_message: str | None = wire(
        STRING,
        "What went wrong, in words.",
        since=2,
        null_since=2,
        default=None,
        ignorable=True,
    )
    topics: Sequence[TopicData] = wire(array(TopicData), "The partitions, by topic.", default=())
    nodes: Sequence[Node] = wire(array(Node), "The brokers named in it.", since=2, default=())
