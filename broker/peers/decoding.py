"""From one-way frames of another broker to what its groups say.

What cannot be true of any group is refused here, with the whole connection. Whether a message
fits its group, and whether batches are what they should be, is not for this module to know.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any, Final

from tidemark.broker.peers.questions import confirm_answers, confirm_rounds, observer_reports
from tidemark.broker.peers.steady_rows import answers_of, appends_of
from tidemark.partitions.raft.entries import (
    UNVERSIONED,
    Entry,
    EpochStart,
    Run,
    configuration,
    epoch_start,
)
from tidemark.partitions.raft.messages import (
    AppendRequest,
    AppendResponse,
    Ballot,
    HandOver,
    Opened,
    PullRequest,
    PullResponse,
    ResetRequest,
    VoteRequest,
    VoteResponse,
)
from tidemark.partitions.replication.peer_messages import (
    GroupBeat,
    GroupMessage,
    Heartbeat,
    PeerMessage,
)
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.errors import MalformedMessage
from tidemark.protocol.messages.peer import steady
from tidemark.protocol.messages.peer.appends import (
    AppendRequestData,
    AppendRequests,
    AppendResponseData,
    AppendResponses,
)
from tidemark.protocol.messages.peer.confirms import ConfirmAnswers, ConfirmRounds
from tidemark.protocol.messages.peer.entries import EntryData, EpochStartData
from tidemark.protocol.messages.peer.heartbeat import PeerHeartbeat
from tidemark.protocol.messages.peer.observer_reports import ObserverReports
from tidemark.protocol.messages.peer.pulls import (
    PullRequestData,
    PullRequests,
    PullResponseData,
    PullResponses,
)
from tidemark.protocol.messages.peer.resets import ResetData, ResetRequests
from tidemark.protocol.messages.peer.votes import (
    HandOvers,
    OpenedReplicas,
    VoteRequests,
    VoteResponses,
)
from tidemark.protocol.peer_frames import PeerHeader, decode_body
from tidemark.protocol.schema import Message as WireMessage
from tidemark.protocol.types import Epoch, NodeId, Offset, Position

# Made for every group with news, ten times a second: calling the class takes twice the time.
_group_beat: Final = partial(tuple.__new__, GroupBeat)
_partition_key: Final = partial(tuple.__new__, PartitionKey)

_BALLOTS: Final = {int(ballot): ballot for ballot in Ballot}


def decode(header: PeerHeader, body: memoryview) -> list[PeerMessage]:
    """The messages of a one-way frame. Records are views of memory that belongs to nobody else;
    those of `SteadyAppends`, which nobody keeps, are views of `body`.

    Raises `MalformedMessage`.
    """
    cls = header.api.request
    to_values = _TO_VALUES[cls]
    if cls in _KEEPS_RECORDS:
        # The frame lies in a receive buffer, which is used again, and entries may be kept.
        body = memoryview(bytes(body))
    return to_values(decode_body(cls, header.version, body))


def _heartbeat(message: PeerHeartbeat) -> list[PeerMessage]:
    beats = tuple(
        _group_beat(
            (
                _partition_key((beat.topic_id, beat.partition)),
                beat.epoch,
                beat.leads,
                _position(beat.committed_epoch, beat.committed_offset),
                beat.log_start_offset,
            )
        )
        for beat in message.groups
    )
    return [
        Heartbeat(
            incarnation=message.incarnation,
            sequence=message.sequence,
            acknowledges=message.acknowledges,
            metadata_version=message.metadata_version,
            groups=beats,
        )
    ]


def _vote_requests(message: VoteRequests) -> list[PeerMessage]:
    return [
        GroupMessage(
            PartitionKey(data.topic_id, data.partition),
            VoteRequest(
                Epoch(data.epoch),
                _ballot(data.ballot),
                _position(data.last_epoch, data.last_offset),
            ),
        )
        for data in message.requests
    ]


def _vote_responses(message: VoteResponses) -> list[PeerMessage]:
    return [
        GroupMessage(
            PartitionKey(data.topic_id, data.partition),
            VoteResponse(Epoch(data.epoch), _ballot(data.ballot), data.granted, data.is_clean),
        )
        for data in message.responses
    ]


def _hand_overs(message: HandOvers) -> list[PeerMessage]:
    return [
        GroupMessage(PartitionKey(data.topic_id, data.partition), HandOver(Epoch(data.epoch)))
        for data in message.groups
    ]


def _opened(message: OpenedReplicas) -> list[PeerMessage]:
    return [
        GroupMessage(PartitionKey(data.topic_id, data.partition), Opened(Epoch(data.epoch)))
        for data in message.groups
    ]


def _append_requests(message: AppendRequests) -> list[PeerMessage]:
    return [
        GroupMessage(PartitionKey(data.topic_id, data.partition), _append_request(data))
        for data in message.requests
    ]


def _append_request(data: AppendRequestData) -> AppendRequest:
    prev = _position(data.prev_epoch, data.prev_offset)
    return AppendRequest(
        Epoch(data.epoch),
        prev,
        _entries(data.entries, prev),
        _position(data.committed_epoch, data.committed_offset),
        _position_or_none(data.clean_at_epoch, data.clean_at_offset),
        data.ends_doubt,
    )


def _append_responses(message: AppendResponses) -> list[PeerMessage]:
    return [
        GroupMessage(PartitionKey(data.topic_id, data.partition), _append_response(data))
        for data in message.responses
    ]


def _append_response(data: AppendResponseData) -> AppendResponse:
    return AppendResponse(
        Epoch(data.epoch),
        _position(data.prev_epoch, data.prev_offset),
        _position_or_none(data.match_epoch, data.match_offset),
        _position_or_none(data.conflict_epoch, data.conflict_offset),
        data.is_clean,
        data.life,
        data.in_doubt,
    )


def _reset_requests(message: ResetRequests) -> list[PeerMessage]:
    return [
        GroupMessage(PartitionKey(data.topic_id, data.partition), _reset(data.reset))
        for data in message.requests
    ]


def _pull_requests(message: PullRequests) -> list[PeerMessage]:
    return [
        GroupMessage(PartitionKey(data.topic_id, data.partition), _pull_request(data))
        for data in message.requests
    ]


def _pull_request(data: PullRequestData) -> PullRequest:
    return PullRequest(
        _position(data.last_epoch, data.last_offset),
        _position(data.committed_epoch, data.committed_offset),
        data.bytes_max,
    )


def _pull_responses(message: PullResponses) -> list[PeerMessage]:
    return [
        GroupMessage(PartitionKey(data.topic_id, data.partition), _pull_response(data))
        for data in message.responses
    ]


def _pull_response(data: PullResponseData) -> PullResponse:
    prev = _position(data.prev_epoch, data.prev_offset)
    return PullResponse(
        Epoch(data.epoch),
        prev,
        _entries(data.entries, prev),
        _position(data.committed_epoch, data.committed_offset),
        None if data.reset is None else _reset(data.reset),
    )


def _entries(entries: Iterable[EntryData], prev: Position) -> tuple[Entry, ...]:
    """In order, none before the end of another; holes are left to those who know the log."""
    found: list[Entry] = []
    epoch, end = prev
    for data in entries:
        if not (data.base_offset >= end and data.epoch >= max(epoch, 0)):
            raise MalformedMessage(
                f"an entry at {data.base_offset}@{data.epoch} after {end}@{epoch}"
            )
        found.append(_entry(data))
        epoch, end = Epoch(data.epoch), Offset(data.end_offset)
    return tuple(found)


def _entry(data: EntryData) -> Entry:
    epoch, base, end = Epoch(data.epoch), Offset(data.base_offset), Offset(data.end_offset)
    if data.begins is not None and data.records is None and base == end:
        return _epoch_start(epoch, base, data.begins)
    if data.begins is None and data.records is not None and base < end and len(data.records):
        return Run(epoch, base, end, data.records)
    raise MalformedMessage(f"an entry from {base} to {end} that is neither records nor a beginning")


def _epoch_start(epoch: Epoch, offset: Offset, data: EpochStartData) -> EpochStart:
    voters, outgoing = _nodes(data.voters), _nodes(data.outgoing)
    if not voters or min(epoch, offset, data.leader, data.version - UNVERSIONED) < 0:
        raise MalformedMessage(f"an epoch {epoch} at {offset} with {len(voters)} voters")
    config = configuration(voters, outgoing, data.version)
    return epoch_start(epoch, offset, NodeId(data.leader), config)


def _nodes(nodes: Iterable[int]) -> tuple[NodeId, ...]:
    found = tuple(map(NodeId, nodes))
    if list(found) != sorted(set(found)) or any(node < 0 for node in found[:1]):
        raise MalformedMessage("voters that are not ascending")
    return found


def _reset(data: ResetData) -> ResetRequest:
    table = tuple(
        _epoch_start(Epoch(r.epoch), Offset(r.start_offset), r.begins) for r in data.table
    )
    for before, after in pairwise(table):
        if not (before.epoch < after.epoch and before.start_offset <= after.start_offset):
            raise MalformedMessage("a table of epochs that is not ascending")
    return ResetRequest(
        Epoch(data.epoch),
        _position(data.start_epoch, data.start_offset),
        table,
        data.snapshot,
        _position(data.committed_epoch, data.committed_offset),
    )


def _ballot(number: int) -> Ballot:
    ballot = _BALLOTS.get(number)
    if ballot is None:
        raise MalformedMessage(f"a ballot of kind {number}")
    return ballot


@lru_cache(maxsize=1024)
def _position(epoch: int, offset: int) -> Position:
    """One for all groups that are there: thousands of idle ones are at the same few places."""
    if epoch < -1 or offset < 0:
        raise MalformedMessage(f"a position of {offset}@{epoch}")
    return Position(Epoch(epoch), Offset(offset))


def _position_or_none(epoch: int, offset: int) -> Position | None:
    return None if offset == -1 else _position(epoch, offset)


# Any: each takes the message that it is listed for.
_TO_VALUES: Final[dict[type[WireMessage], Callable[[Any], list[PeerMessage]]]] = {
    PeerHeartbeat: _heartbeat,
    VoteRequests: _vote_requests,
    VoteResponses: _vote_responses,
    HandOvers: _hand_overs,
    AppendRequests: _append_requests,
    AppendResponses: _append_responses,
    ResetRequests: _reset_requests,
    PullRequests: _pull_requests,
    PullResponses: _pull_responses,
    OpenedReplicas: _opened,
    ConfirmRounds: confirm_rounds,
    ConfirmAnswers: confirm_answers,
    ObserverReports: observer_reports,
    steady.SteadyAppends: lambda message: [appends_of(message)],
    steady.SteadyAnswers: lambda message: [answers_of(message)],
}
_KEEPS_RECORDS: Final = frozenset({AppendRequests, PullResponses})
