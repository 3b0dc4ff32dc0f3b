"""What brokers ask and tell each other beside their groups' own messages, both ways."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tidemark.partitions.replication.peer_messages import (
    ConfirmAnswer,
    ConfirmRound,
    GroupEpoch,
    ObserverReport,
    ObserverStanding,
    PeerMessage,
)
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.errors import MalformedMessage
from tidemark.protocol.messages.peer.confirms import (
    ConfirmAnswers,
    ConfirmRounds,
    GroupEpochData,
)
from tidemark.protocol.messages.peer.observer_reports import (
    ObserverReports,
    ObserverStandingData,
)
from tidemark.protocol.schema import Message as WireMessage
from tidemark.protocol.types import Epoch, NodeId, Offset, Position


def question_to_wire(message: ConfirmRound | ConfirmAnswer | ObserverReport) -> WireMessage:
    match message:
        case ConfirmRound(number, groups):
            return ConfirmRounds(number=number, groups=_epochs_to_wire(groups))
        case ConfirmAnswer(number, groups):
            return ConfirmAnswers(number=number, groups=_epochs_to_wire(groups))
        case ObserverReport(standings):
            return ObserverReports(standings=[_standing_to_wire(each) for each in standings])


def confirm_rounds(message: ConfirmRounds) -> list[PeerMessage]:
    return [ConfirmRound(message.number, _epochs(message.groups))]


def confirm_answers(message: ConfirmAnswers) -> list[PeerMessage]:
    return [ConfirmAnswer(message.number, _epochs(message.groups))]


def observer_reports(message: ObserverReports) -> list[PeerMessage]:
    """Raises `MalformedMessage` for a place that no log has."""
    return [ObserverReport(tuple(map(_standing, message.standings)))]


def _epochs_to_wire(groups: Iterable[GroupEpoch]) -> list[GroupEpochData]:
    return [
        GroupEpochData(topic_id=key.topic_id, partition=key.partition, epoch=epoch)
        for key, epoch in groups
    ]


def _epochs(groups: Sequence[GroupEpochData]) -> tuple[GroupEpoch, ...]:
    return tuple(
        GroupEpoch(PartitionKey(data.topic_id, data.partition), Epoch(data.epoch))
        for data in groups
    )


def _standing_to_wire(standing: ObserverStanding) -> ObserverStandingData:
    return ObserverStandingData(
        topic_id=standing.key.topic_id,
        partition=standing.key.partition,
        committed_epoch=standing.committed.epoch,
        committed_offset=standing.committed.offset,
        staleness_ms=standing.staleness_ms,
        parent=standing.parent,
    )


def _standing(data: ObserverStandingData) -> ObserverStanding:
    if data.committed_epoch < -1 or data.committed_offset < 0:
        raise MalformedMessage(
            f"an observer at {data.committed_offset}@{data.committed_epoch}, where nobody can be"
        )
    return ObserverStanding(
        PartitionKey(data.topic_id, data.partition),
        Position(Epoch(data.committed_epoch), Offset(data.committed_offset)),
        data.staleness_ms,
        NodeId(data.parent),
    )
