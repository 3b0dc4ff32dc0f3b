"""What groups and brokers say, as the structs that travel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from tidemark.broker.peers.entries import NO_POSITION, entry_to_wire, reset_to_wire
from tidemark.partitions.raft.messages import (
    AppendRequest,
    AppendResponse,
    HandOver,
    Message,
    Opened,
    PullRequest,
    PullResponse,
    ResetRequest,
    VoteRequest,
    VoteResponse,
)
from tidemark.partitions.replication.peer_messages import GroupMessage, Heartbeat
from tidemark.protocol.messages.peer.appends import (
    AppendRequestData,
    AppendRequests,
    AppendResponseData,
    AppendResponses,
)
from tidemark.protocol.messages.peer.heartbeat import GroupBeatData, PeerHeartbeat
from tidemark.protocol.messages.peer.pulls import (
    PullRequestData,
    PullRequests,
    PullResponseData,
    PullResponses,
)
from tidemark.protocol.messages.peer.resets import ResetRequestData, ResetRequests
from tidemark.protocol.messages.peer.votes import (
    HandOverData,
    HandOvers,
    OpenedData,
    OpenedReplicas,
    VoteRequestData,
    VoteRequests,
    VoteResponseData,
    VoteResponses,
)
from tidemark.protocol.schema import Message as WireMessage
from tidemark.protocol.schema import Struct
from tidemark.protocol.values import dataclass


def heartbeat_to_wire(heartbeat: Heartbeat) -> PeerHeartbeat:
    return PeerHeartbeat(
        incarnation=heartbeat.incarnation,
        sequence=heartbeat.sequence,
        acknowledges=heartbeat.acknowledges,
        metadata_version=heartbeat.metadata_version,
        groups=[
            GroupBeatData(
                topic_id=beat.key.topic_id,
                partition=beat.key.partition,
                epoch=beat.epoch,
                leads=beat.leads,
                committed_epoch=beat.committed.epoch,
                committed_offset=beat.committed.offset,
                log_start_offset=beat.log_start,
            )
            for beat in heartbeat.groups
        ],
    )


def _vote_request(group: GroupMessage, message: VoteRequest) -> VoteRequestData:
    return VoteRequestData(
        topic_id=group.key.topic_id,
        partition=group.key.partition,
        epoch=message.epoch,
        ballot=message.ballot,
        last_epoch=message.last.epoch,
        last_offset=message.last.offset,
    )


def _vote_response(group: GroupMessage, message: VoteResponse) -> VoteResponseData:
    return VoteResponseData(
        topic_id=group.key.topic_id,
        partition=group.key.partition,
        epoch=message.epoch,
        ballot=message.ballot,
        granted=message.granted,
        is_clean=message.is_clean,
    )


def _hand_over(group: GroupMessage, message: HandOver) -> HandOverData:
    return HandOverData(
        topic_id=group.key.topic_id, partition=group.key.partition, epoch=message.epoch
    )


def _opened(group: GroupMessage, message: Opened) -> OpenedData:
    return OpenedData(
        topic_id=group.key.topic_id, partition=group.key.partition, epoch=message.epoch
    )


def _append_request(group: GroupMessage, message: AppendRequest) -> AppendRequestData:
    clean_at = NO_POSITION if message.clean_at is None else message.clean_at
    return AppendRequestData(
        topic_id=group.key.topic_id,
        partition=group.key.partition,
        epoch=message.epoch,
        prev_epoch=message.prev.epoch,
        prev_offset=message.prev.offset,
        committed_epoch=message.committed.epoch,
        committed_offset=message.committed.offset,
        clean_at_epoch=clean_at.epoch,
        clean_at_offset=clean_at.offset,
        ends_doubt=message.ends_doubt,
        entries=[entry_to_wire(entry) for entry in message.entries],
    )


def _append_response(group: GroupMessage, message: AppendResponse) -> AppendResponseData:
    match = NO_POSITION if message.match is None else message.match
    conflict = NO_POSITION if message.conflict is None else message.conflict
    return AppendResponseData(
        topic_id=group.key.topic_id,
        partition=group.key.partition,
        epoch=message.epoch,
        prev_epoch=message.prev.epoch,
        prev_offset=message.prev.offset,
        match_epoch=match.epoch,
        match_offset=match.offset,
        conflict_epoch=conflict.epoch,
        conflict_offset=conflict.offset,
        is_clean=message.is_clean,
        life=message.life,
        in_doubt=message.in_doubt,
    )


def _reset_request(group: GroupMessage, message: ResetRequest) -> ResetRequestData:
    return ResetRequestData(
        topic_id=group.key.topic_id, partition=group.key.partition, reset=reset_to_wire(message)
    )


def _pull_request(group: GroupMessage, message: PullRequest) -> PullRequestData:
    return PullRequestData(
        topic_id=group.key.topic_id,
        partition=group.key.partition,
        last_epoch=message.last.epoch,
        last_offset=message.last.offset,
        committed_epoch=message.committed.epoch,
        committed_offset=message.committed.offset,
        bytes_max=message.bytes_max,
    )


def _pull_response(group: GroupMessage, message: PullResponse) -> PullResponseData:
    return PullResponseData(
        topic_id=group.key.topic_id,
        partition=group.key.partition,
        epoch=message.epoch,
        prev_epoch=message.prev.epoch,
        prev_offset=message.prev.offset,
        entries=[entry_to_wire(entry) for entry in message.entries],
        committed_epoch=message.committed.epoch,
        committed_offset=message.committed.offset,
        reset=None if message.reset is None else reset_to_wire(message.reset),
    )


@dataclass(frozen=True, slots=True)
class Kind:
    """How one kind of groups' messages travels."""

    cls: type[Message]
    to_data: Callable[[GroupMessage, Any], Struct]  # Any: a message of this kind
    wrap: Callable[[Sequence[Any]], WireMessage]  # Any: what `to_data` makes
    is_urgent: bool = True

    def data(self, group: GroupMessage) -> Struct:
        return self.to_data(group, group.message)


KINDS: Final = (
    Kind(VoteRequest, _vote_request, lambda data: VoteRequests(requests=data)),
    Kind(VoteResponse, _vote_response, lambda data: VoteResponses(responses=data)),
    Kind(AppendResponse, _append_response, lambda data: AppendResponses(responses=data)),
    Kind(PullRequest, _pull_request, lambda data: PullRequests(requests=data)),
    Kind(Opened, _opened, lambda data: OpenedReplicas(groups=data)),
    Kind(
        AppendRequest,
        _append_request,
        lambda data: AppendRequests(requests=data),
        is_urgent=False,
    ),
    Kind(PullResponse, _pull_response, lambda data: PullResponses(responses=data), is_urgent=False),
    Kind(ResetRequest, _reset_request, lambda data: ResetRequests(requests=data), is_urgent=False),
    # After the entries that the successor has to have.
    Kind(HandOver, _hand_over, lambda data: HandOvers(groups=data), is_urgent=False),
)
"""In the order in which they are sent."""
