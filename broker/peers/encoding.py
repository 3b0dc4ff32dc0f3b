"""From what groups and brokers say to frames.

What one turn has for one broker is put together by kind, so that a thousand groups share a few
frames; within a kind the order is kept. A frame ends at about a megabyte: then a heartbeat waits
for one frame, and not for all the batches that are on their way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Protocol, cast

from tidemark.broker.network.send_queue import FileSlice, Part
from tidemark.broker.peers.questions import question_to_wire
from tidemark.broker.peers.steady_rows import answers_to_wire, appends_to_wire
from tidemark.broker.peers.to_wire import KINDS, Kind, heartbeat_to_wire
from tidemark.partitions.raft.entries import Entry, Run
from tidemark.partitions.raft.messages import (
    AppendRequest,
    Message,
    PullResponse,
    ResetRequest,
)
from tidemark.partitions.replication.peer_messages import GroupMessage, Heartbeat, PeerMessage
from tidemark.partitions.replication.steady_messages import SteadyAnswers, SteadyAppends
from tidemark.protocol.peer_frames import encode_peer_request
from tidemark.protocol.schema import Message as WireMessage
from tidemark.protocol.schema import SizedRecords, Struct
from tidemark.protocol.values import dataclass

FRAME_BYTES: Final = 1024 * 1024
"""What a frame of several messages holds at most. One message may be larger: a batch is whole."""
# What a message takes beside its records; nearly.
_MESSAGE_BYTES: Final = 64


class SharedSlice(FileSlice, Protocol):
    """A slice that others may be sending, too."""

    def share(self) -> FileSlice:
        """The same range, to be released by itself."""
        ...


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
        # The records that a broker sends and has not in memory are slices of log files. What goes
        # to several brokers is read once, so each of them has to hold the file by itself.
        parts = [
            part if isinstance(part, bytes) else cast("SharedSlice", part).share()
            for part in encoded
        ]
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


class SharedFrames:
    """Frames for several brokers, which are told the same; of messages that live longer than this.

    What lies in files is not among them: each connection holds those by itself.
    """

    __slots__ = ("_frames",)

    def __init__(self) -> None:
        self._frames: dict[tuple[int, int], Frame] = {}

    def appends(self, message: SteadyAppends, version: int) -> Frame:
        """Made when the first broker needs it."""
        key = id(message), version
        frame = self._frames.get(key)
        if frame is None:
            frame = Frame.of(appends_to_wire(message), version, is_urgent=False)
            if frame.memory_bytes == frame.size_bytes:
                self._frames[key] = frame
        return frame


def encode(
    messages: Iterable[PeerMessage], version: int, shared: SharedFrames | None = None
) -> list[Frame]:
    """The frames for `messages`, the urgent ones first. Nothing of them is needed afterwards, but
    the log files that slices hold. `shared` has what was made for others already."""
    shared = shared or SharedFrames()
    frames: list[Frame] = []
    appends: list[Frame] = []
    by_kind: dict[type[Message], list[GroupMessage]] = {}
    for message in messages:
        if isinstance(message, GroupMessage):
            by_kind.setdefault(type(message.message), []).append(message)
        elif isinstance(message, Heartbeat):
            frames.append(Frame.of(heartbeat_to_wire(message), version))
        elif isinstance(message, SteadyAppends):
            appends.append(shared.appends(message, version))
        elif isinstance(message, SteadyAnswers):
            frames.append(Frame.of(answers_to_wire(message), version))
        else:
            frames.append(Frame.of(question_to_wire(message), version))
    if by_kind:
        for kind in KINDS:
            of_kind = by_kind.get(kind.cls)
            if of_kind is not None:
                frames += _frames(kind, of_kind, version)
    return frames + appends


def _frames(kind: Kind, messages: Sequence[GroupMessage], version: int) -> Iterator[Frame]:
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
