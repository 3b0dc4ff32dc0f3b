"""Pulls: observers ask for committed entries."""

from collections.abc import Sequence
from uuid import UUID

from tidemark.protocol.messages.peer.entries import EntryData
from tidemark.protocol.messages.peer.resets import ResetData
from tidemark.protocol.messages.peer.versions import SPOKEN
from tidemark.protocol.schema import (
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
class PullRequestData(Struct):
    """What an observer of one group asks for."""

    topic_id: UUID = wire(UUID16, "The topic.")
    partition: int = wire(INT32, "The partition.")
    last_epoch: int = wire(INT32, "The epoch of the observer's last entry.")
    last_offset: int = wire(INT64, "Where that entry ends.")
    committed_epoch: int = wire(INT32, "The epoch of the last entry that it knows is committed.")
    committed_offset: int = wire(INT64, "Where that entry ends.")
    bytes_max: int = wire(INT32, "About how much to answer with.")


@message(versions=SPOKEN)
class PullRequests(Message):
    """Asks for committed entries, of many groups at once."""

    requests: Sequence[PullRequestData] = wire(array(PullRequestData), "What is asked, by group.")


@struct
class PullResponseData(Struct):
    """Committed entries of one group."""

    topic_id: UUID = wire(UUID16, "The topic.")
    partition: int = wire(INT32, "The partition.")
    epoch: int = wire(INT32, "The sender's epoch.")
    prev_epoch: int = wire(INT32, "The request's `last_epoch`.")
    prev_offset: int = wire(INT64, "The request's `last_offset`.")
    entries: Sequence[EntryData] = wire(array(EntryData), "The entries that follow it.")
    committed_epoch: int = wire(INT32, "The epoch of the sender's last committed entry.")
    committed_offset: int = wire(INT64, "Where that entry ends.")
    reset: ResetData | None = wire(
        nested(ResetData), "Where the observer has to begin anew, if it has to.", null_since=0
    )


@message(versions=SPOKEN)
class PullResponses(Message):
    """Answers to PullRequests."""

    responses: Sequence[PullResponseData] = wire(array(PullResponseData), "Entries, by group.")
