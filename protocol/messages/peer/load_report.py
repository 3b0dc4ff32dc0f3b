"""LoadReport: what a broker tells the leader of the metadata about the partitions that it leads."""

from collections.abc import Sequence
from uuid import UUID

from tidemark.protocol.messages.peer.versions import SPOKEN
from tidemark.protocol.schema import (
    BOOL,
    INT16,
    INT32,
    INT64,
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
class VoterLag(Struct):
    """How far a voter is behind the leader that reports."""

    node_id: int = wire(INT32, "The voter.")
    lag: int = wire(
        INT64,
        "How many records its log ends before the leader's, rounded up to a power of two; -1 if "
        "that is not known, or it cannot be heard.",
    )


@struct
class GroupLoad(Struct):
    """One partition that the reporting broker leads."""

    topic_id: UUID = wire(UUID16, "The topic.")
    partition: int = wire(INT32, "The partition.")
    epoch: int = wire(INT32, "The epoch in which it is led.")
    size_bytes: int = wire(INT64, "The size of its log.")
    bytes_in_per_second: int = wire(INT64, "Bytes a second that producers write, smoothed.")
    bytes_out_per_second: int = wire(INT64, "Bytes a second that clients read, smoothed.")
    is_changing: bool = wire(BOOL, "Whether its voters are being changed.")
    voters: Sequence[VoterLag] = wire(array(VoterLag), "The voters, the leader too.")
    learners: Sequence[int] = wire(
        array(INT32), "The replicas that are sent the log and do not vote."
    )


@message(versions=SPOKEN, flexible_since=1)
class LoadReportRequest(Message):
    """The partitions led by the sender that have changed since its last report; some hundreds at a
    time."""

    epoch: int = wire(INT32, "The epoch in which the receiver leads the metadata.")
    begins: bool = wire(
        BOOL, "Whether it is the first one to this leader: what it has is outdated."
    )
    is_full: bool = wire(BOOL, "Whether the sender's disk is too full to take records.")
    groups: Sequence[GroupLoad] = wire(array(GroupLoad), "The partitions.")


@message(versions=SPOKEN, flexible_since=1)
class LoadReportResponse(Message):
    """Whether it was taken."""

    error_code: int = wire(INT16, "Why not: NOT_CONTROLLER; 0 is nothing.", default=0)
    error_message: str | None = wire(STRING, "The same in a sentence.", null_since=0, default=None)
