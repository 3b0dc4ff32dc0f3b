"""From what groups and brokers say to frames.

What one turn has for one broker is put together by kind, so that a thousand groups share a few
frames; within a kind the order is kept. A frame ends at about a megabyte: then a heartbeat waits
for one frame, and not for all the batches that are on their way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from tidemark.broker.network.send_queue import Part
from tidemark.partitions.raft.entries import Configuration, Entry, EpochStart, Run
from tidemark.partitions.raft.messages import (
    AppendRequest,
    AppendResponse,
    HandOver,
    Message,
    PullRequest,
    PullResponse,
    ResetRequest,
    VoteRequest,
    VoteResponse,
)
from tidemark.partitions.replication.peer_messages import GroupMessage, Heartbeat, PeerMessage
from tidemark.protocol.messages.peer.appends import (
    AppendRequestData,
    AppendRequests,
    AppendResponseData,
    AppendResponses,
)
from tidemark.protocol.messages.peer.entries import EntryData, EpochRowData, EpochStartData
from tidemark.protocol.messages.peer.heartbeat import GroupBeatData, PeerHeartbeat
from tidemark.protocol.messages.peer.pulls import (
    PullRequestData,
    PullRequests,
    PullResponseData,
    PullResponses,
)
from tidemark.protocol.messages.peer.resets import ResetData, ResetRequestData, ResetRequests
from tidemark.protocol.messages.peer.votes import (
    HandOverData,
    HandOvers,
    VoteRequestData,
    VoteRequests,
    VoteResponseData,
    VoteResponses,
)
from tidemark.protocol.peer_frames import encode_peer_request
from tidemark.protocol.schema import Message as WireMessage
from tidemark.protocol.schema import SizedRecords, Struct
from tidemark.protocol.types import Position

FRAME_BYTES: Final = 1024 * 1024
"""What a frame of several messages holds at most. One message may be larger: a batch is whole."""
# What a message takes beside its records; nearly.
_MESSAGE_BYTES: Final = 64
_NOWHERE: Final = Position(-1, -1)  # type: ignore[arg-type]  # no position that a log has


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame with its length, ready to be sent."""

    parts: Sequence[Part]
    size_bytes: int
    memory_bytes: int
    """The bytes that are in memory; the rest is in files."""
    is_urgent: bool
    """Whether it goes before those that carry records."""

    @classmethod
    def of(cls, message: WireMessage, version: int, *, is_urgent: bool = True) -> Frame:
        return cls.made_of(encode_peer_request(message, version), is_urgent=is_urgent)

    @classmethod
    def made_of(cls, encoded: Sequence[bytes | SizedRecords], *, is_urgent: bool) -> Frame:
        # The records that a broker sends and has not in memory are slices of log files.
        parts = cast("Sequence[Part]", encoded)
        size = memory = 0
        for part in parts:
            size += len(part)
            if isinstance(part, bytes):
                memory += len(part)
        return cls(parts, size, memory, is_urgent)

    def release(self) -> None:
        """It will not be sent: let go of the log files."""
        for part in self.parts:
            if not isinstance(part, bytes):
                part.release()


def encode(messages: Iterable[PeerMessage], version: int) -> list[Frame]:
    """The frames for `messages`, the urgent ones first. Nothing of them is needed afterwards, but
    the log files that slices hold."""
    heartbeats: list[Heartbeat] = []
    by_kind: dict[type[Message], list[GroupMessage]] = {}
    for message in messages:
        if isinstance(message, Heartbeat):
            heartbeats.append(message)
        else:
            by_kind.setdefault(type(message.message), []).append(message)
    frames = [Frame.of(_heartbeat(each), version) for each in heartbeats]
    for kind in _KINDS:
        of_kind = by_kind.get(kind.cls)
        if of_kind is not None:
            frames += _frames(kind, of_kind, version)
    return frames


def release(messages: Iterable[PeerMessage]) -> None:
    """For messages that are not sent: let go of the log files that their slices hold."""
    for message in messages:
        if isinstance(message, GroupMessage):
            for entry in _entries_of(message.message):
                if isinstance(entry, Run) and hasattr(entry.records, "release"):
                    entry.records.release()


def _frames(kind: _Kind, messages: Sequence[GroupMessage], version: int) -> Iterator[Frame]:
    data: list[Struct] = []
    size = 0
    for message in messages:
        message_bytes = _MESSAGE_BYTES + _payload_bytes(message.message)
        if data and size + message_bytes > FRAME_BYTES:
            yield Frame.of(kind.wrap(data), version, is_urgent=kind.is_urgent)
            data, size = [], 0
        data.append(kind.data(message))
        size += message_bytes
    yield Frame.of(kind.wrap(data), version, is_urgent=kind.is_urgent)


def _entries_of(message: Message) -> tuple[Entry, ...]:
    return message.entries if isinstance(message, AppendRequest | PullResponse) else ()


def _payload_bytes(message: Message) -> int:
    if isinstance(message, ResetRequest):
        return len(message.snapshot)
    return sum(len(entry.records) for entry in _entries_of(message) if isinstance(entry, Run))


def _heartbeat(heartbeat: Heartbeat) -> PeerHeartbeat:
    return PeerHeartbeat(
        incarnation=heartbeat.incarnation,
        sequence=heartbeat.sequence,
        acknowledges=heartbeat.acknowledges,
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


def _append_request(group: GroupMessage, message: AppendRequest) -> AppendRequestData:
    return AppendRequestData(
        topic_id=group.key.topic_id,
        partition=group.key.partition,
        epoch=message.epoch,
        prev_epoch=message.prev.epoch,
        prev_offset=message.prev.offset,
        committed_epoch=message.committed.epoch,
        committed_offset=message.committed.offset,
        entries=[_entry(entry) for entry in message.entries],
    )


def _append_response(group: GroupMessage, message: AppendResponse) -> AppendResponseData:
    match = _NOWHERE if message.match is None else message.match
    conflict = _NOWHERE if message.conflict is None else message.conflict
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
    )


def _reset_request(group: GroupMessage, message: ResetRequest) -> ResetRequestData:
    return ResetRequestData(
        topic_id=group.key.topic_id, partition=group.key.partition, reset=_reset(message)
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
        entries=[_entry(entry) for entry in message.entries],
        committed_epoch=message.committed.epoch,
        committed_offset=message.committed.offset,
        reset=None if message.reset is None else _reset(message.reset),
    )


def _entry(entry: Entry) -> EntryData:
    if isinstance(entry, Run):
        return EntryData(
            epoch=entry.epoch,
            base_offset=entry.base_offset,
            end_offset=entry.end_offset,
            begins=None,
            records=cast("bytes", entry.records),  # or a slice, which the encoder takes, too
        )
    return EntryData(
        epoch=entry.epoch,
        base_offset=entry.start_offset,
        end_offset=entry.start_offset,
        begins=_start(entry),
        records=None,
    )


def _start(entry: EpochStart) -> EpochStartData:
    config: Configuration = entry.config
    return EpochStartData(leader=entry.leader, voters=config.voters, outgoing=config.outgoing)


def _reset(message: ResetRequest) -> ResetData:
    return ResetData(
        epoch=message.epoch,
        start_epoch=message.start.epoch,
        start_offset=message.start.offset,
        table=[
            EpochRowData(epoch=row.epoch, start_offset=row.start_offset, begins=_start(row))
            for row in message.table
        ],
        snapshot=message.snapshot,
        committed_epoch=message.committed.epoch,
        committed_offset=message.committed.offset,
    )


@dataclass(frozen=True, slots=True)
class _Kind:
    """How one kind of groups' messages travels."""

    cls: type[Message]
    to_data: Callable[[GroupMessage, Any], Struct]  # Any: a message of this kind
    wrap: Callable[[Sequence[Any]], WireMessage]  # Any: what `to_data` makes
    is_urgent: bool = True

    def data(self, group: GroupMessage) -> Struct:
        return self.to_data(group, group.message)


# In the order in which they are sent.
_KINDS: Final = (
    _Kind(VoteRequest, _vote_request, lambda data: VoteRequests(requests=data)),
    _Kind(VoteResponse, _vote_response, lambda data: VoteResponses(responses=data)),
    _Kind(AppendResponse, _append_response, lambda data: AppendResponses(responses=data)),
    _Kind(PullRequest, _pull_request, lambda data: PullRequests(requests=data)),
    _Kind(
        AppendRequest,
        _append_request,
        lambda data: AppendRequests(requests=data),
        is_urgent=False,
    ),
    _Kind(
        PullResponse, _pull_response, lambda data: PullResponses(responses=data), is_urgent=False
    ),
    _Kind(ResetRequest, _reset_request, lambda data: ResetRequests(requests=data), is_urgent=False),
    # After the entries that the successor has to have.
    _Kind(HandOver, _hand_over, lambda data: HandOvers(groups=data), is_urgent=False),
)
