"""From one-way frames of another broker to what its groups say.

What cannot be true of any group is refused here, with the whole connection. Whether a message
fits its group, and whether batches are what they should be, is not for this module to know.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from tidemark.broker.peers.entries import entries_of, position_of, position_or_none, reset_of
from tidemark.broker.peers.questions import confirm_answers, confirm_rounds, observer_reports
from tidemark.broker.peers.steady_rows import answers_of, appends_of
from tidemark.partitions.raft.messages import (
    AppendRequest,
    AppendResponse,
    Ballot,
    HandOver,
    Opened,
    PullRequest,
    PullResponse,
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
from tidemark.protocol.messages.peer.heartbeat import PeerHeartbeat
from tidemark.protocol.messages.peer.observer_reports import ObserverReports
from tidemark.protocol.messages.peer.pulls import (
    PullRequestData,
    PullRequests,
    PullResponseData,
    PullResponses,
)
from tidemark.protocol.messages.peer.resets import ResetRequests
from tidemark.protocol.messages.peer.votes import (
    HandOvers,
    OpenedReplicas,
    VoteRequests,
    VoteResponses,
)
from tidemark.protocol.peer_frames import PeerHeader, decode_body
from tidemark.protocol.schema import Message as WireMessage
from tidemark.protocol.types import Epoch

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
                position_of(beat.committed_epoch, beat.committed_offset),
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
                position_of(data.last_epoch, data.last_offset),
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
    prev = position_of(data.prev_epoch, data.prev_offset)
    return AppendRequest(
        Epoch(data.epoch),
        prev,
        entries_of(data.entries, prev),
        position_of(data.committed_epoch, data.committed_offset),
        position_or_none(data.clean_at_epoch, data.clean_at_offset),
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
        position_of(data.prev_epoch, data.prev_offset),
        position_or_none(data.match_epoch, data.match_offset),
        position_or_none(data.conflict_epoch, data.conflict_offset),
        data.is_clean,
        data.life,
        data.in_doubt,
    )


def _reset_requests(message: ResetRequests) -> list[PeerMessage]:
    return [
        GroupMessage(PartitionKey(data.topic_id, data.partition), reset_of(data.reset))
        for data in message.requests
    ]


def _pull_requests(message: PullRequests) -> list[PeerMessage]:
    return [
        GroupMessage(PartitionKey(data.topic_id, data.partition), _pull_request(data))
        for data in message.requests
    ]


def _pull_request(data: PullRequestData) -> PullRequest:
    return PullRequest(
        position_of(data.last_epoch, data.last_offset),
        position_of(data.committed_epoch, data.committed_offset),
        data.bytes_max,
    )


def _pull_responses(message: PullResponses) -> list[PeerMessage]:
    return [
        GroupMessage(PartitionKey(data.topic_id, data.partition), _pull_response(data))
        for data in message.responses
    ]


def _pull_response(data: PullResponseData) -> PullResponse:
    prev = position_of(data.prev_epoch, data.prev_offset)
    return PullResponse(
        Epoch(data.epoch),
        prev,
        entries_of(data.entries, prev),
        position_of(data.committed_epoch, data.committed_offset),
        None if data.reset is None else reset_of(data.reset),
    )


def _ballot(number: int) -> Ballot:
    ballot = _BALLOTS.get(number)
    if ballot is None:
        raise MalformedMessage(f"a ballot of kind {number}")
    return ballot


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
