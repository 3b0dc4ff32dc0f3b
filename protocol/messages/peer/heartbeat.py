"""Heartbeat: a broker is alive, and what has changed in the groups it knows of."""

from collections.abc import Sequence
from uuid import UUID

from tidemark.protocol.messages.peer.versions import SPOKEN
from tidemark.protocol.schema import (
    BOOL,
    INT32,
    INT64,
    UUID16,
    Message,
    Struct,
    array,
    message,
    struct,
    wire,
)


@struct
class GroupBeatData(Struct):
    """One group that the sender leads, or has ceased to lead."""

    topic_id: UUID = wire(UUID16, "The topic.")
    partition: int = wire(INT32, "The partition.")
    epoch: int = wire(INT32, "The leader epoch.")
    leads: bool = wire(BOOL, "Whether the sender leads the group in that epoch.")
    committed_epoch: int = wire(INT32, "The epoch of the last committed entry.")
    committed_offset: int = wire(INT64, "Where that entry ends.")
    log_start_offset: int = wire(INT64, "The first offset that the sender's log still has.")


@message(versions=SPOKEN, straight_line=True)
class PeerHeartbeat(Message):
    """Says that the sender lives, and which of its groups have changed. It has no response."""

    incarnation: int = wire(INT64, "How many times the sender's directory has been opened.")
    sequence: int = wire(INT64, "Grows with each heartbeat to the same broker, from 1.")
    acknowledges: int = wire(
        INT64, "The newest `sequence` taken in from the other side; 0 asks for everything anew."
    )
    metadata_version: int = wire(
        INT64, "Up to which version the sender has applied the cluster's metadata."
    )
    groups: Sequence[GroupBeatData] = wire(
        array(GroupBeatData),
        "The groups that have changed since what the other side has acknowledged.",
    )
