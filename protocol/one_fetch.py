"""Fetches of one partition, read by comparing them with earlier ones.

Who reads one partition, and keeps no session, asks for the same each time but for the correlation
id and the offset:

```
00 01 00 0b | 00 00 00 2a | 00 03 'r' 'a' 'w' ff ff ... | 00 .. 01 f4 | ff ff ff ff ...
key, version  correlation   client id, limits, topic ...  offset        the rest
```

So what decoding one has given is remembered by the bytes that were the same, and the next one is
not decoded. Its answer is that of the first one with other numbers in it. A reader that asks again
once it has an answer waits for all that is done between the two.

A request is remembered only if it is, byte by byte, what encoding it gives: then there is nothing
in it that comparing could miss.
"""

from __future__ import annotations

from dataclasses import replace
from struct import Struct
from typing import Final

from tidemark.protocol.frames import ApiCodec
from tidemark.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
    ReplicaState,
)
from tidemark.protocol.primitives import encode_uvarint
from tidemark.protocol.types import READ_COMMITTED, Offset

_AFTER_ID: Final = 8  # key, version, correlation id
_ID: Final = slice(4, 8)
_CLIENT_ID_LENGTH: Final = Struct(">h")
_OFFSET: Final = Struct(">q")
_LENGTH: Final = Struct(">i")
# What follows the records in a flexible version: no tags in the partition, the topic, the answer.
_NO_TAGS: Final = b"\x00\x00\x00"
# Of a connection: one that sends nothing twice is not to pay for it for ever.
_TRIES_MAX: Final = 64
_KNOWN_MAX: Final = 4
"""A client leaves out a partition of which it has enough: it reads now the one, now the other."""
_FRAME_BYTES_MAX: Final = 4 * 1024
"""Names may have 32 kB; a topic's have 249 bytes at most."""

# Since this version readers know every compression, and an answer has its three ends in a row.
_VERSION_MIN: Final = 10
_CONSUMER: Final = -1
_NO_SESSION: Final = (0, -1)
_ENDS: Final = Struct(">qqq")
# No topic has a name with these bytes in it: they are not UTF-8.
_MARK: Final = 0x0123_4567_89AB_CDEF


class OneFetch:
    """What such requests have in common, and what their answers have around the records."""

    __slots__ = (
        "_after",
        "_before",
        "_between",
        "_is_flexible",
        "_offset_at",
        "_size",
        "_start",
        "bytes_max",
        "ending",
        "isolation",
        "leader_epoch",
        "min_bytes",
        "partition",
        "topic",
        "topic_id",
    )

    def __init__(
        self, frame: memoryview, offset_at: int, request: FetchRequest, codec: ApiCodec
    ) -> None:
        self._size = len(frame)
        self._offset_at = offset_at
        self._before = frame[_AFTER_ID:offset_at].tobytes()
        self._after = frame[offset_at + _OFFSET.size :].tobytes()
        (topic,) = request.topics
        (asked,) = topic.partitions
        self.topic = topic.topic
        self.topic_id = topic.topic_id
        """In versions in which topics go by their ids; then they have no names."""
        self.partition = asked.partition
        self.leader_epoch = asked.current_leader_epoch
        self.bytes_max = max(0, min(request.max_bytes, asked.partition_max_bytes))
        self.min_bytes = request.min_bytes
        self.isolation = request.isolation_level
        self._is_flexible = codec.is_flexible
        # What is alike in all answers: what lies around the ends, and behind the records.
        marked = _marked_answer(request, codec)
        ends_at = marked.index(_ENDS.pack(_MARK, _MARK, _MARK))
        self._start = marked[_AFTER_ID:ends_at]
        # Without records there is their length behind, of one byte in a flexible version.
        length_at = -1 - len(_NO_TAGS) if codec.is_flexible else -_LENGTH.size
        self._between = marked[ends_at + _ENDS.size : length_at]
        self.ending = _NO_TAGS if codec.is_flexible else b""
        """What follows the records."""

    def offset_in(self, frame: memoryview) -> Offset | None:
        """From where it reads; `None` if it differs in more than that."""
        at = self._offset_at
        if (
            len(frame) != self._size
            or frame[_AFTER_ID:at] != self._before
            or frame[at + _OFFSET.size :] != self._after
        ):
            return None
        return Offset(_OFFSET.unpack_from(frame, at)[0])

    def head(
        self, frame: memoryview, ends: tuple[Offset, Offset, Offset], records_bytes: int
    ) -> bytes:
        """What the frame that answers this one has before so many bytes of records: the high
        watermark, the last stable offset and where the log starts are in it."""
        length = (
            encode_uvarint(records_bytes + 1) if self._is_flexible else _LENGTH.pack(records_bytes)
        )
        rest = b"".join((frame[_ID], self._start, _ENDS.pack(*ends), self._between, length))
        return _LENGTH.pack(len(rest) + records_bytes + len(self.ending)) + rest


class OneFetches:
    """Of one connection, in one version: what its requests have been."""

    __slots__ = ("_known", "_tries_left", "codec")

    def __init__(self, codec: ApiCodec) -> None:
        self.codec = codec
        self._known: list[OneFetch] = []
        self._tries_left = _TRIES_MAX

    def find(self, frame: memoryview) -> tuple[OneFetch, Offset] | None:
        """What the request is, and from where it reads; `None` if it has to be decoded."""
        for known in self._known:
            offset = known.offset_in(frame)
            if offset is not None:
                return known, offset
        return None

    def remember(self, frame: memoryview, request: FetchRequest) -> None:
        """`request` is what was decoded from `frame`. Does nothing unless it is a consumer's that
        keeps no session and reads one partition, wherever its replicas are."""
        if (
            self.codec.version < _VERSION_MIN
            or len(request.topics) != 1
            or len(request.topics[0].partitions) != 1
            or (request.session_id, request.session_epoch) != _NO_SESSION
            or (request.replica_id, request.replica_state) != (_CONSUMER, ReplicaState())
            or request.rack_id
            or len(frame) > _FRAME_BYTES_MAX
            or not self._tries_left
            or self.find(frame) is not None
        ):
            return
        self._tries_left -= 1
        offset_at = _offset_at(frame, request, self.codec)
        if offset_at is not None:
            known = OneFetch(frame, offset_at, request, self.codec)
            self._known = [known, *self._known[: _KNOWN_MAX - 1]]


def _offset_at(frame: memoryview, request: FetchRequest, codec: ApiCodec) -> int | None:
    """Where the offset is in the frame; `None` if encoding the request does not give these bytes:
    with tags, or something behind it."""
    (client_id_bytes,) = _CLIENT_ID_LENGTH.unpack_from(frame, _AFTER_ID)
    body_at: int = _AFTER_ID + _CLIENT_ID_LENGTH.size + max(client_id_bytes, 0)
    if codec.is_flexible:
        if frame[body_at]:
            return None
        body_at += 1
    body = codec.encode_request_body(request)
    if frame[body_at:] != body:
        return None
    (topic,) = request.topics
    (asked,) = topic.partitions
    other = replace(asked, fetch_offset=~asked.fetch_offset)  # no byte of it is the same
    changed = codec.encode_request_body(
        replace(request, topics=[replace(topic, partitions=[other])])
    )
    return body_at + next(at for at, byte in enumerate(body) if byte != changed[at])


def _marked_answer(request: FetchRequest, codec: ApiCodec) -> bytes:
    """An answer without records, and with the mark for its ends."""
    (topic,) = request.topics
    data = PartitionData(
        partition_index=topic.partitions[0].partition,
        high_watermark=_MARK,
        last_stable_offset=_MARK,
        log_start_offset=_MARK,
        aborted_transactions=() if request.isolation_level == READ_COMMITTED else None,
    )
    response = FetchResponse(
        responses=[
            FetchableTopicResponse(topic=topic.topic, topic_id=topic.topic_id, partitions=[data])
        ]
    )
    (marked,) = codec.encode_response(response, 0)
    assert isinstance(marked, bytes)
    return marked
