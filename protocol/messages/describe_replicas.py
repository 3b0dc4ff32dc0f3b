"""DescribeReplicas: how far each replica of a partition is, learners and observers too. Ours."""

from collections.abc import Sequence

from tidemark.protocol.schema import (
    BOOL,
    FLOAT64,
    INT16,
    INT32,
    INT64,
    STRING,
    Message,
    Struct,
    array,
    message,
    struct,
    wire,
)


@struct
class DescribeReplicasTopic(Struct):
    """The partitions of one topic that are asked about."""

    topic: str = wire(STRING, "The topic.")
    partitions: Sequence[int] | None = wire(
        array(INT32), "The partitions; null asks about all of them.", null_since=0, default=None
    )


@message(versions=(0, 1), flexible_since=0, straight_line=True)
class DescribeReplicasRequest(Message):
    """Asks how the replicas of partitions are. Who leads a partition knows most."""

    topics: Sequence[DescribeReplicasTopic] | None = wire(
        array(DescribeReplicasTopic), "The topics; null asks about all.", null_since=0, default=None
    )


@struct
class ReplicaDescription(Struct):
    """One replica, as the broker that answers knows it."""

    broker: int = wire(INT32, "The broker that holds it.")
    role: str = wire(STRING, "`voter`, `learner` (on its way to a vote) or `observer`.")
    is_alive: bool = wire(BOOL, "Whether the broker that answers can hear that broker.")
    end_offset: int = wire(INT64, "How far it is; -1 if that is not known.", default=-1)
    lag_records: int = wire(
        INT64, "How many committed records it lacks; -1 if that is not known.", default=-1
    )
    staleness_ms: int = wire(
        INT64,
        "For how long it may have lacked what the leader has committed, in milliseconds; -1 if "
        "that is not known.",
        default=-1,
    )
    parent: int = wire(INT32, "The broker that an observer pulls from; -1 without one.", default=-1)


@struct
class ReassignmentProgress(Struct):
    """A move of replicas that is under way."""

    wanted: Sequence[int] = wire(array(INT32), "Who is to hold the partition.")
    stage: str = wire(
        STRING,
        "`waiting`, `copying`, `moving the leader`, `changing voters` or `done`; empty if the "
        "leader does not answer.",
        default="",
    )
    why: str = wire(STRING, "What stands in the way; empty if nothing does.", default="")
    learner: int = wire(INT32, "The broker that is being copied to; -1 is none.", default=-1)
    copied_bytes: int = wire(INT64, "What has been sent to it, and to others before.", default=0)
    remaining_bytes: int = wire(INT64, "About what it has still to be sent.", default=0)
    bytes_per_second: int = wire(INT64, "How fast, in the last seconds.", default=0)


@struct
class CompactionProgress(Struct):
    """How far a replica's log is compacted: each broker compacts what it holds by itself."""

    dirty_ratio: float = wire(FLOAT64, "The share of the log that was never compacted, 0 to 1.")
    cleaned_ms: int = wire(
        INT64,
        "When its last run ended, in milliseconds since 1970; -1 if none is known.",
        default=-1,
    )
    why: str = wire(STRING, "Why it is set aside; empty if it is not.", default="")


@struct
class PartitionReplicas(Struct):
    """One partition."""

    partition: int = wire(INT32, "The partition.")
    error_code: int = wire(INT16, "Why nothing is known; 0 if something is.", default=0)
    error_message: str | None = wire(STRING, "The same in words.", null_since=0, default=None)
    leader: int = wire(INT32, "Who leads it; -1 if nobody is known to.", default=-1)
    leader_epoch: int = wire(INT32, "The newest epoch that is known; -1 if none is.", default=-1)
    is_leaders_word: bool = wire(
        BOOL, "Whether the leader answers; others know little of each other.", default=False
    )
    high_watermark: int = wire(
        INT64, "Up to where it is committed, as far as is known; -1 if it is not.", default=-1
    )
    log_start: int = wire(INT64, "The first offset there is; -1 if it is not known.", default=-1)
    replicas: Sequence[ReplicaDescription] = wire(
        array(ReplicaDescription), "Voters in their order, then the others.", default=()
    )
    reassignments: Sequence[ReassignmentProgress] = wire(
        array(ReassignmentProgress),
        "How far the move of its replicas is; none if none is under way, and never more than one.",
        default=(),
    )
    compactions: Sequence[CompactionProgress] = wire(
        array(CompactionProgress),
        "Of the replica of the broker that answers; none if it is not compacted, never more than "
        "one.",
        since=1,
        ignorable=True,
        default=(),
    )


@struct
class TopicReplicas(Struct):
    """The partitions of one topic."""

    topic: str = wire(STRING, "The topic.")
    error_code: int = wire(INT16, "Why nothing is known; 0 if something is.", default=0)
    partitions: Sequence[PartitionReplicas] = wire(
        array(PartitionReplicas), "The partitions.", default=()
    )


@message(versions=(0, 1), flexible_since=0, straight_line=True)
class DescribeReplicasResponse(Message):
    """Says how the replicas are."""

    throttle_time_ms: int = wire(
        INT32,
        "How long the client is asked to hold back, in milliseconds; 0 is not at all.",
        default=0,
    )
    error_code: int = wire(INT16, "Why nothing was tried; 0 if it was.", default=0)
    error_message: str | None = wire(STRING, "The same in words.", null_since=0, default=None)
    topics: Sequence[TopicReplicas] = wire(array(TopicReplicas), "The topics.", default=())
