"""Fetch: read record batches."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from tidemark.protocol.messages.node_endpoint import NodeEndpoint
from tidemark.protocol.schema import (
    INT8,
    INT16,
    INT32,
    INT64,
    RECORDS,
    STRING,
    UUID16,
    ZERO_UUID,
    Message,
    SizedRecords,
    Struct,
    array,
    message,
    nested,
    struct,
    wire,
)

INT32_MAX: Final = 2**31 - 1
INT64_MAX: Final = 2**63 - 1
NAMES_UNTIL: Final = 12
"""From the next version on topics are known by their ids alone."""


@struct
class FetchPartition(Struct):
    """What to read of one partition."""

    partition: int = wire(INT32, "The partition.")
    current_leader_epoch: int = wire(
        INT32,
        "The leader epoch the client knows of, to be fenced by; -1 asks for no check.",
        since=9,
        default=-1,
        ignorable=True,
    )
    fetch_offset: int = wire(INT64, "The offset to read from.")
    last_fetched_epoch: int = wire(
        INT32, "The epoch of the follower's last record; -1 from consumers.", since=12, default=-1
    )
    log_start_offset: int = wire(
        INT64,
        "The follower's own log start; -1 from consumers.",
        since=5,
        default=-1,
        ignorable=True,
    )
    partition_max_bytes: int = wire(INT32, "The most bytes to read from this partition.")
    replica_directory_id: UUID = wire(
        UUID16,
        "The follower's data directory; all zeros from consumers.",
        since=17,
        tag=0,
        default=ZERO_UUID,
        ignorable=True,
    )
    high_watermark: int = wire(
        INT64,
        "The high watermark that the follower knows of; the largest number if it has none to say.",
        since=18,
        tag=1,
        default=INT64_MAX,
        ignorable=True,
    )


@struct
class FetchTopic(Struct):
    """What to read of one topic."""

    topic: str = wire(STRING, "The topic.", until=NAMES_UNTIL, default="", ignorable=True)
    topic_id: UUID = wire(
        UUID16, "The topic's id.", since=NAMES_UNTIL + 1, default=ZERO_UUID, ignorable=True
    )
    partitions: Sequence[FetchPartition] = wire(array(FetchPartition), "The partitions to read.")


@struct
class ForgottenTopic(Struct):
    """Partitions that leave the session."""

    topic: str = wire(STRING, "The topic.", until=NAMES_UNTIL, default="", ignorable=True)
    topic_id: UUID = wire(
        UUID16, "The topic's id.", since=NAMES_UNTIL + 1, default=ZERO_UUID, ignorable=True
    )
    partitions: Sequence[int] = wire(array(INT32), "The partitions that leave.")


@struct
class ReplicaState(Struct):
    """Who fetches, if it is a broker."""

    replica_id: int = wire(INT32, "The broker number of a follower; -1 for a consumer.", default=-1)
    replica_epoch: int = wire(INT64, "Which of its lives it is; -1 if not known.", default=-1)


@message(versions=(4, 18), flexible_since=12, straight_line=True)
class FetchRequest(Message):
    """Reads record batches from partitions, waiting for them if need be."""

    cluster_id: str | None = wire(
        STRING,
        "The cluster the follower means to fetch from, if it knows.",
        since=12,
        null_since=12,
        tag=0,
        default=None,
        ignorable=True,
    )
    replica_id: int = wire(
        INT32, "The broker number of a follower; -1 for a consumer.", until=14, default=-1
    )
    replica_state: ReplicaState = wire(
        nested(ReplicaState),
        "The same in later versions.",
        since=15,
        tag=1,
        default=ReplicaState(),
    )
    max_wait_ms: int = wire(INT32, "How long to wait for `min_bytes`, in milliseconds.")
    min_bytes: int = wire(INT32, "The fewest bytes worth answering with before the wait is over.")
    max_bytes: int = wire(
        INT32,
        "The most bytes to answer with; the first batch comes whole even if it is larger.",
        default=INT32_MAX,
    )
    isolation_level: int = wire(
        INT8,
        "0 sees everything below the high watermark, 1 only what is committed by transactions.",
        default=0,
    )
    session_id: int = wire(
        INT32, "The fetch session, 0 for none.", since=7, default=0, ignorable=True
    )
    session_epoch: int = wire(
        INT32,
        "The request's place in its session; -1 for a fetch without session, 0 to open one.",
        since=7,
        default=-1,
        ignorable=True,
    )
    topics: Sequence[FetchTopic] = wire(
        array(FetchTopic), "What to read; a topic may be listed more than once."
    )
    forgotten_topics_data: Sequence[ForgottenTopic] = wire(
        array(ForgottenTopic), "What to remove from the session.", since=7, default=()
    )
    rack_id: str = wire(
        STRING, "The rack the consumer stands in.", since=11, default="", ignorable=True
    )


@struct
class EpochEndOffset(Struct):
    """A leader epoch and where it ends."""

    epoch: int = wire(INT32, "The leader epoch.", default=-1)
    end_offset: int = wire(INT64, "Its end, exclusive.", default=-1)


@struct
class LeaderIdAndEpoch(Struct):
    """The leader of a partition and its epoch."""

    leader_id: int = wire(
        INT32, "The broker that leads the partition, -1 if there is none.", default=-1
    )
    leader_epoch: int = wire(INT32, "The leader epoch, -1 if it is not known.", default=-1)


@struct
class SnapshotId(Struct):
    """A snapshot of a log."""

    end_offset: int = wire(INT64, "The offset it reaches to, exclusive.", default=-1)
    epoch: int = wire(INT32, "The epoch of the last record in it.", default=-1)


@struct
class AbortedTransaction(Struct):
    """A transaction whose records readers of committed data must skip."""

    producer_id: int = wire(INT64, "Whose transaction it was.")
    first_offset: int = wire(INT64, "Where it began.")


@struct
class PartitionData(Struct):
    """What was read of one partition."""

    partition_index: int = wire(INT32, "The partition.")
    error_code: int = wire(INT16, "What went wrong; 0 is nothing.", default=0)
    high_watermark: int = wire(INT64, "The end of what is committed.")
    last_stable_offset: int = wire(
        INT64, "The end of what is decided: every transaction below it has ended.", default=-1
    )
    log_start_offset: int = wire(
        INT64, "The first offset that the partition still has.", since=5, default=-1, ignorable=True
    )
    diverging_epoch: EpochEndOffset = wire(
        nested(EpochEndOffset),
        "Where the follower's log leaves the leader's, when it does.",
        since=12,
        tag=0,
        default=EpochEndOffset(),
    )
    current_leader: LeaderIdAndEpoch = wire(
        nested(LeaderIdAndEpoch),
        "Who leads the partition now, when it is not the broker asked.",
        since=12,
        tag=1,
        default=LeaderIdAndEpoch(),
    )
    snapshot_id: SnapshotId = wire(
        nested(SnapshotId),
        "The snapshot to fetch instead, for logs that have them.",
        since=12,
        tag=2,
        default=SnapshotId(),
    )
    aborted_transactions: Sequence[AbortedTransaction] | None = wire(
        array(AbortedTransaction),
        "The aborted transactions that overlap what was read; null unless `isolation_level` is 1.",
        null_since=0,
        default=None,
    )
    preferred_read_replica: int = wire(
        INT32, "A broker that is better read from, -1 for none.", since=11, default=-1
    )
    records: bytes | memoryview | SizedRecords | None = wire(
        RECORDS,
        "Whole record batches, the first of which holds the offset asked for; never null to "
        "clients, some of which take that for a broken message.",
        null_since=0,
        default=b"",
    )


@struct
class FetchableTopicResponse(Struct):
    """What was read of one topic."""

    topic: str = wire(STRING, "The topic.", until=NAMES_UNTIL, default="", ignorable=True)
    topic_id: UUID = wire(
        UUID16, "The topic's id.", since=NAMES_UNTIL + 1, default=ZERO_UUID, ignorable=True
    )
    partitions: Sequence[PartitionData] = wire(array(PartitionData), "What was read, by partition.")


@message(versions=(4, 18), flexible_since=12, straight_line=True)
class FetchResponse(Message):
    """The record batches that were read."""

    throttle_time_ms: int = wire(
        INT32,
        "How long the client is asked to hold back, in milliseconds; 0 is not at all.",
        default=0,
    )
    error_code: int = wire(
        INT16,
        "What went wrong with the whole fetch; 0 is nothing.",
        since=7,
        default=0,
        ignorable=True,
    )
    session_id: int = wire(INT32, "The fetch session, 0 if there is none.", since=7, default=0)
    responses: Sequence[FetchableTopicResponse] = wire(
        array(FetchableTopicResponse), "What was read, by topic."
    )
    node_endpoints: Sequence[NodeEndpoint] = wire(
        array(NodeEndpoint),
        "Where the leaders are that the partitions name.",
        since=16,
        tag=0,
        default=(),
    )
