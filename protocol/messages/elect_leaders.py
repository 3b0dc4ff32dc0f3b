"""ElectLeaders: have partitions led by the replicas that are to lead them first."""

from collections.abc import Sequence

from tidemark.protocol.schema import (
    INT8,
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


@struct
class TopicPartitions(Struct):
    """Partitions of one topic."""

    topic: str = wire(STRING, "The topic.")
    partitions: Sequence[int] = wire(array(INT32), "Its partitions.")


@message(versions=(0, 2), flexible_since=2, straight_line=True)
class ElectLeadersRequest(Message):
    """Has partitions led by the replicas that are to lead them first."""

    election_type: int = wire(
        INT8,
        "Which replica is to lead: 0 the preferred one, 1 any that lives, though it may lack what "
        "was acknowledged.",
        since=1,
        default=0,
    )
    topic_partitions: Sequence[TopicPartitions] | None = wire(
        array(TopicPartitions), "The partitions, by topic; null is all.", null_since=0
    )
    timeout_ms: int = wire(INT32, "How long the broker may take, in milliseconds.", default=60_000)


@struct
class PartitionResult(Struct):
    """What became of one partition."""

    partition_id: int = wire(INT32, "The partition.")
    error_code: int = wire(INT16, "Why its leader stayed; 0 if another one leads.", default=0)
    error_message: str | None = wire(STRING, "The same in words.", null_since=0, default=None)


@struct
class ReplicaElectionResult(Struct):
    """What became of the partitions of one topic."""

    topic: str = wire(STRING, "The topic.")
    partition_result: Sequence[PartitionResult] = wire(array(PartitionResult), "Its partitions.")


@message(versions=(0, 2), flexible_since=2, straight_line=True)
class ElectLeadersResponse(Message):
    """Says of each partition whether another replica leads it now."""

    throttle_time_ms: int = wire(
        INT32,
        "How long the client is asked to hold back, in milliseconds; 0 is not at all.",
        default=0,
    )
    error_code: int = wire(INT16, "Why nothing was tried; 0 if it was.", since=1, default=0)
    replica_election_results: Sequence[ReplicaElectionResult] = wire(
        array(ReplicaElectionResult), "The outcome, by topic."
    )
