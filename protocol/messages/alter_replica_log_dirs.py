"""AlterReplicaLogDirs: replicas of a broker are moved to another of its directories."""

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


@struct
class AlterReplicaLogDirTopic(Struct):
    """Replicas of one topic."""

    name: str = wire(STRING, "The topic.")
    partitions: Sequence[int] = wire(array(INT32), "The partitions whose replicas are to move.")


@struct
class AlterReplicaLogDir(Struct):
    """What is to be in one directory."""

    path: str = wire(STRING, "The directory.")
    topics: Sequence[AlterReplicaLogDirTopic] = wire(
        array(AlterReplicaLogDirTopic), "The replicas that are to be there."
    )


@message(versions=(1, 2), flexible_since=2, straight_line=True)
class AlterReplicaLogDirsRequest(Message):
    """Moves replicas between the directories of the broker that is asked."""

    dirs: Sequence[AlterReplicaLogDir] = wire(array(AlterReplicaLogDir), "The directories.")


@struct
class AlterReplicaLogDirPartitionResult(Struct):
    """What came of one replica."""

    partition_index: int = wire(INT32, "The partition.")
    error_code: int = wire(INT16, "What went wrong; 0 is nothing.", default=0)


@struct
class AlterReplicaLogDirTopicResult(Struct):
    """What came of the replicas of one topic."""

    topic_name: str = wire(STRING, "The topic.")
    partitions: Sequence[AlterReplicaLogDirPartitionResult] = wire(
        array(AlterReplicaLogDirPartitionResult), "The partitions."
    )


@message(versions=(1, 2), flexible_since=2, straight_line=True)
class AlterReplicaLogDirsResponse(Message):
    """What came of each replica."""

    throttle_time_ms: int = wire(
        INT32,
        "How long the client is asked to hold back, in milliseconds; 0 is not at all.",
        default=0,
    )
    results: Sequence[AlterReplicaLogDirTopicResult] = wire(
        array(AlterReplicaLogDirTopicResult), "By topic."
    )
