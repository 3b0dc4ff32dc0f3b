"""Appends: the leaders' entries on their way to the followers. Most of the traffic."""

from collections.abc import Sequence
from uuid import UUID

from tidemark.protocol.messages.peer.entries import EntryData
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
class AppendRequestData(Struct):
    """Entries of one group's log."""

    topic_id: UUID = wire(UUID16, "The topic.")
    partition: int = wire(INT32, "The partition.")
    epoch: int = wire(INT32, "The leader's epoch.")
    prev_epoch: int = wire(INT32, "The epoch of the entry before these.")
    prev_offset: int = wire(INT64, "Where the entry before these ends.")
    committed_epoch: int = wire(INT32, "The epoch of the leader's last committed entry.")
    committed_offset: int = wire(INT64, "Where that entry ends.")
    clean_at_epoch: int = wire(
        INT32, "To a follower that is not clean: it is, once it holds this position."
    )
    clean_at_offset: int = wire(INT64, "Where the entry of that position ends; else -1.")
    ends_doubt: int = wire(INT32, "The follower's life whose doubt ends with that, else 0.")
    entries: Sequence[EntryData] = wire(
        array(EntryData), "The entries that follow; none at all only asks."
    )


@message(versions=SPOKEN, straight_line=True)
class AppendRequests(Message):
    """Sends entries, of many groups at once."""

    requests: Sequence[AppendRequestData] = wire(array(AppendRequestData), "Entries, by group.")


@struct
class AppendResponseData(Struct):
    """What became of one AppendRequestData."""

    topic_id: UUID = wire(UUID16, "The topic.")
    partition: int = wire(INT32, "The partition.")
    epoch: int = wire(INT32, "The follower's epoch.")
    prev_epoch: int = wire(INT32, "The request's.")
    prev_offset: int = wire(INT64, "The request's.")
    match_epoch: int = wire(INT32, "The epoch of the request's last entry, now durable.")
    match_offset: int = wire(
        INT64, "Where that entry ends; -1 if the logs part before the request's first."
    )
    conflict_epoch: int = wire(
        INT32, "The follower's largest epoch at or below `prev_epoch`, if the logs part."
    )
    conflict_offset: int = wire(INT64, "Where that epoch ends in the follower's log; else -1.")
    is_clean: bool = wire(
        BOOL, "Whether the follower knows that it has lost nothing it ever acknowledged."
    )
    life: int = wire(INT32, "The follower's incarnation.")
    in_doubt: bool = wire(BOOL, "Whether it may have forgotten epochs and votes, too.")


@message(versions=SPOKEN, straight_line=True)
class AppendResponses(Message):
    """Answers to AppendRequests, sent once the entries are durable."""

    responses: Sequence[AppendResponseData] = wire(
        array(AppendResponseData), "The outcomes, by group."
    )
