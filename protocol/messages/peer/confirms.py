"""Confirmations: a leader asks whether anybody is in a later epoch than its own."""

from collections.abc import Sequence
from uuid import UUID

from tidemark.protocol.messages.peer.versions import SPOKEN
from tidemark.protocol.schema import (
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
class GroupEpochData(Struct):
    """A group, and an epoch of it."""

    topic_id: UUID = wire(UUID16, "The topic.")
    partition: int = wire(INT32, "The partition.")
    epoch: int = wire(INT32, "The leader epoch.")


@message(versions=SPOKEN)
class ConfirmRounds(Message):
    """Asks, for groups that the sender leads, which epochs the receiver is in."""

    number: int = wire(INT64, "Grows with each round of the sender.")
    groups: Sequence[GroupEpochData] = wire(
        array(GroupEpochData), "The groups, and the epochs that the sender leads."
    )


@message(versions=SPOKEN)
class ConfirmAnswers(Message):
    """Answers ConfirmRounds."""

    number: int = wire(INT64, "The number of the round that is answered.")
    groups: Sequence[GroupEpochData] = wire(
        array(GroupEpochData), "The epochs that the sender is in. Groups it has not are left out."
    )
