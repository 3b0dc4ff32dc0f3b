"""Resets: a log begins anew, because what it lacks is gone from the sender's."""

from collections.abc import Sequence
from uuid import UUID

from tidemark.protocol.messages.peer.entries import EpochRowData
from tidemark.protocol.messages.peer.versions import SPOKEN
from tidemark.protocol.schema import (
    BYTES,
    INT32,
    INT64,
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
class ResetData(Struct):
    """Where a log begins anew, and all that is known up to there."""

    epoch: int = wire(INT32, "The sender's epoch.")
    start_epoch: int = wire(
        INT32, "The epoch of the entry that ends where the sender's first batch begins."
    )
    start_offset: int = wire(
        INT64, "Where the sender's first batch begins; its log start may be within that."
    )
    table: Sequence[EpochRowData] = wire(array(EpochRowData), "The epochs up to there.")
    snapshot: bytes = wire(BYTES, "The state machine there; empty where there is none.")
    committed_epoch: int = wire(INT32, "The epoch of the sender's last committed entry.")
    committed_offset: int = wire(INT64, "Where that entry ends.")


@struct
class ResetRequestData(Struct):
    """The reset of one group's follower."""

    topic_id: UUID = wire(UUID16, "The topic.")
    partition: int = wire(INT32, "The partition.")
    reset: ResetData = wire(nested(ResetData), "Where its log begins anew.")


@message(versions=SPOKEN)
class ResetRequests(Message):
    """Tells followers to give up their logs and begin anew."""

    requests: Sequence[ResetRequestData] = wire(array(ResetRequestData), "The resets, by group.")
