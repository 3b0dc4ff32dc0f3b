"""Votes: who is to lead a group."""

from collections.abc import Sequence
from uuid import UUID

from tidemark.protocol.messages.peer.versions import SPOKEN
from tidemark.protocol.schema import (
    BOOL,
    INT8,
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
class VoteRequestData(Struct):
    """What a candidate asks of one group's voter."""

    topic_id: UUID = wire(UUID16, "The topic.")
    partition: int = wire(INT32, "The partition.")
    epoch: int = wire(INT32, "The epoch that the candidate would lead.")
    ballot: int = wire(
        INT8, "0 asks what the voter would say, 1 asks for its vote, 2 does so for a migration."
    )
    last_epoch: int = wire(INT32, "The epoch of the candidate's last entry.")
    last_offset: int = wire(INT64, "Where that entry ends.")


@message(versions=SPOKEN, straight_line=True)
class VoteRequests(Message):
    """Asks for votes, in many groups at once."""

    requests: Sequence[VoteRequestData] = wire(array(VoteRequestData), "What is asked, by group.")


@struct
class VoteResponseData(Struct):
    """What one group's voter says."""

    topic_id: UUID = wire(UUID16, "The topic.")
    partition: int = wire(INT32, "The partition.")
    epoch: int = wire(INT32, "The epoch asked for if the vote is granted, else the voter's own.")
    ballot: int = wire(INT8, "The request's.")
    granted: bool = wire(BOOL, "Whether the candidate has the vote.")
    is_clean: bool = wire(
        BOOL, "Whether the voter knows that it has lost nothing it ever acknowledged."
    )


@message(versions=SPOKEN, straight_line=True)
class VoteResponses(Message):
    """Answers to VoteRequests."""

    responses: Sequence[VoteResponseData] = wire(array(VoteResponseData), "The votes, by group.")


@struct
class HandOverData(Struct):
    """One group whose leader wants to be followed."""

    topic_id: UUID = wire(UUID16, "The topic.")
    partition: int = wire(INT32, "The partition.")
    epoch: int = wire(INT32, "The epoch of the leader that hands over.")


@message(versions=SPOKEN)
class HandOvers(Message):
    """Tells a leader's successor to ask for votes now."""

    groups: Sequence[HandOverData] = wire(array(HandOverData), "The groups.")


@struct
class OpenedData(Struct):
    """One group whose replica has been opened."""

    topic_id: UUID = wire(UUID16, "The topic.")
    partition: int = wire(INT32, "The partition.")
    epoch: int = wire(INT32, "The newest epoch that this replica knows.")


@message(versions=SPOKEN, straight_line=True)
class OpenedReplicas(Message):
    """Tells who leads, or is to lead, that these replicas have not taken in what came before."""

    groups: Sequence[OpenedData] = wire(array(OpenedData), "The groups.")
