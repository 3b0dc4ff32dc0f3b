"""Observers' reports: how far they are, for the leaders of their groups."""

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
class ObserverStandingData(Struct):
    """How far the sender is in one group that it observes."""

    topic_id: UUID = wire(UUID16, "The topic.")
    partition: int = wire(INT32, "The partition.")
    committed_epoch: int = wire(INT32, "The epoch of the last entry that it has.")
    committed_offset: int = wire(INT64, "Where that entry ends.")
    staleness_ms: int = wire(
        INT64, "For how long it may have lacked what the leader has committed; -1: not known."
    )
    parent: int = wire(INT32, "The broker it pulls from; -1: none now.")


@message(versions=SPOKEN)
class ObserverReports(Message):
    """Tells a broker how far the sender is in groups that the receiver leads."""

    standings: Sequence[ObserverStandingData] = wire(array(ObserverStandingData), "By group.")
