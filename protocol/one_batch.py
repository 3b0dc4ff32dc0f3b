"""Produce requests with one batch, read by comparing them with earlier ones.

librdkafka, and with it most clients, sends one batch of one partition in a request. Such requests
of one connection to one topic differ in the correlation id, the partition, the batch and its
length, and nowhere else:

```
00 00 00 07 | 00 00 00 2a | 00 03 'r' 'a' 'w' ff ff ... | 00 00 00 03 | 00 00 40 00 | ...
key, version  correlation   client id ... acks ... topic  partition     length        batch
```

So what decoding one has given is remembered by the bytes that were the same, and the next one is
not decoded. Its answer is that of the first one with other numbers in it.

A request is remembered only if it is, byte by byte around its batch, what encoding it gives: then
there is nothing in it that comparing could miss.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from struct import Struct
from struct import error as StructError
from typing import Final, TypeAlias

from tidemark.protocol.frames import ApiCodec
from tidemark.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from tidemark.protocol.primitives import encode_uvarint
from tidemark.protocol.types import Offset

_AFTER_ID: Final = 8  # key, version, correlation id
_ID: Final = slice(4, 8)
_CLIENT_ID_LENGTH: Final = Struct(">h")
_LENGTH: Final = Struct(">i")
_CORRELATION: Final = Struct(">i")
_PARTITION: Final = Struct(">i")
# What follows the batch in a flexible version: no tags in the partition, the topic, the request.
_NO_TAGS: Final = b"\x00\x00\x00"
# Of a connection: one that sends nothing twice is not to pay for it for ever.
_TRIES_MAX: Final = 64
_STARTS_MAX: Final = 4
_AROUND_BYTES_MAX: Final = 4 * 1024
"""Of what is around the batch. Names may have 32 kB, and 64 requests that state such ones would
have a connection remember megabytes; a topic's have 249 bytes at most."""

# Since this version an answer has in a row: the partition, the error, where the batch begins, its
# time, and where the log begins.
_VERSION_MIN: Final = 5
_NUMBERS: Final = Struct(">ihqqq")
# No topic has a name with these bytes in it: they are not UTF-8.
_MARK: Final = 0x0123_4567_89AB_CDEF


Run: TypeAlias = tuple[int, list[int], list[memoryview]]
"""Requests that follow each other and are for one partition: which, their correlation ids, and
their batches."""


class OneBatch:
    """What such requests have in common, and the answer to them."""

    __slots__ = ("_between", "_ending", "_pack", "_size", "acks", "timeout_ms", "topic", "topic_id")

    def __init__(self, request: ProduceRequest, codec: ApiCodec) -> None:
        topic = request.topic_data[0]
        self.acks = request.acks
        self.timeout_ms = request.timeout_ms
        self.topic = topic.name
        self.topic_id = topic.topic_id
        """In versions in which topics go by their ids; then they have no names."""
        marked = _marked_answer(topic, codec)
        numbers_at = marked.index(_NUMBERS.pack(0, 0, _MARK, _MARK, _MARK))
        # What is alike in all answers: their length, and what lies around the numbers.
        (self._size,) = _LENGTH.unpack_from(marked)
        self._between = marked[_ID.stop : numbers_at]
        self._ending = marked[numbers_at + _NUMBERS.size :]
        self._pack = Struct(f">ii{len(self._between)}sihqqq{len(self._ending)}s").pack

    def answers(
        self,
        partition: int,
        own_ids: Sequence[int],
        base_offsets: Sequence[Offset],
        append_time_ms: int,
        log_start: Offset,
    ) -> bytes:
        """What answers requests with these correlation ids, as many as there are base offsets, one
        behind the other, each a frame with its length."""
        pack, size, between, ending = self._pack, self._size, self._between, self._ending
        if len(base_offsets) == 1:
            own_id, base_offset = own_ids[0], base_offsets[0]
            return pack(
                size, own_id, between, partition, 0, base_offset, append_time_ms, log_start, ending
            )
        rest = append_time_ms, log_start, ending
        return b"".join(
            [
                pack(size, own_id, between, partition, 0, base_offset, *rest)
                for own_id, base_offset in zip(own_ids, base_offsets, strict=False)
            ]
        )


def correlation_ids(answers: bytes, count: int) -> Iterator[int]:
    """Of the requests to which `OneBatch.answers` has given so many answers."""
    size_bytes = len(answers) // count
    for at in range(_ID.start, len(answers), size_bytes):
        yield _CORRELATION.unpack_from(answers, at)[0]


class OneBatches:
    """Of one connection, in one version: what its requests have been."""

    __slots__ = ("_is_flexible", "_known", "_starts", "_tries_left", "codec")

    def __init__(self, codec: ApiCodec) -> None:
        self.codec = codec
        self._is_flexible = codec.is_flexible
        self._known: dict[bytes, OneBatch] = {}
        # Where the batch's length has been, at one place unless topics' names differ in length; and
        # what lies before it: key and version, correlation id, what is alike, partition.
        self._starts: dict[int, Struct] = {}
        self._tries_left = _TRIES_MAX

    def find(
        self, frames: Sequence[memoryview], *, bytes_max: int
    ) -> tuple[OneBatch, list[Run]] | None:
        """What the request in the first of `frames` is, and with it those that follow and differ in
        nothing but partition and batch, in runs: as long as their batches are no more than so many
        bytes. `None` if the first has to be decoded."""
        first = frames[0]
        for start, head in self._starts.items():
            try:
                key_and_version, _, alike, _ = head.unpack_from(first)
            except StructError:
                continue
            known = self._known.get(alike)
            if known is not None:
                runs = self._runs(frames, start, (key_and_version, alike), bytes_max)
                return (known, runs) if runs else None
        return None

    def _runs(
        self, frames: Sequence[memoryview], start: int, like: tuple[bytes, bytes], bytes_max: int
    ) -> list[Run]:
        """Of the first of `frames` that have the same key and version, and what is alike."""
        # Not `list[int]()`, which takes twenty times as long: this is done for each burst.
        runs: list[Run] = []
        own_ids: list[int] = []
        batches: list[memoryview] = []
        unpack, last, bytes_left = self._starts[start].unpack_from, None, 0
        for frame in frames:
            records = self._batch_at(start, frame)
            if records is None:
                break
            key_and_version, own_id, alike, partition = unpack(frame)
            if (key_and_version, alike) != like:
                break
            bytes_left -= len(records)
            if partition != last or bytes_left < 0:
                own_ids, batches = [own_id], [records]
                runs.append((partition, own_ids, batches))
                last, bytes_left = partition, bytes_max - len(records)
            else:
                own_ids.append(own_id)
                batches.append(records)
        return runs

    def _batch_at(self, start: int, frame: memoryview) -> memoryview | None:
        """The batch whose length is at `start`; nothing else may follow."""
        if self._is_flexible:
            if len(frame) > start + 1 and frame[start] >= 0x80 > frame[start + 1]:
                # A length of two bytes, as that of most batches is.
                length, at = (frame[start] & 0x7F | frame[start + 1] << 7) - 1, start + 2
            else:
                length, at = _read_length(frame, start)
            end = at + length
            is_all = length > 0 and len(frame) == end + len(_NO_TAGS)
            return frame[at:end] if is_all and frame[end:].tobytes() == _NO_TAGS else None
        at = start + _LENGTH.size
        if len(frame) <= at or _LENGTH.unpack_from(frame, start)[0] != len(frame) - at:
            return None
        return frame[at:]

    def remember(self, frame: memoryview, request: ProduceRequest) -> None:
        """`request` is what was decoded from `frame`. Does nothing unless it has one batch, is
        answered, and has its like in what is to come."""
        records = _only_batch(request)
        if (
            not records
            or not request.acks
            or request.transactional_id is not None
            or self.codec.version < _VERSION_MIN
            or not self._tries_left
            or len(frame) - len(records) > _AROUND_BYTES_MAX
        ):
            return
        self._tries_left -= 1
        start = len(frame) - len(records) - _LENGTH.size
        if self.codec.is_flexible:
            length_bytes = len(encode_uvarint(len(records) + 1))
            start = len(frame) - len(_NO_TAGS) - len(records) - length_bytes
        alike = frame[_AFTER_ID : start - _PARTITION.size]
        if self._is_plain(frame, request, start) and self._make_place_for(start, len(alike)):
            self._known[alike.tobytes()] = OneBatch(request, self.codec)

    def _make_place_for(self, start: int, alike_bytes: int) -> bool:
        """False: there is none left."""
        if start not in self._starts and len(self._starts) < _STARTS_MAX:
            self._starts[start] = Struct(f">4si{alike_bytes}si")
        return start in self._starts

    def _is_plain(self, frame: memoryview, request: ProduceRequest, start: int) -> bool:
        """Whether encoding the request gives these bytes: no tags, nothing behind it. Its batch,
        whose length is at `start`, is neither encoded nor compared."""
        (client_id_bytes,) = _CLIENT_ID_LENGTH.unpack_from(frame, _AFTER_ID)
        body_at = _AFTER_ID + _CLIENT_ID_LENGTH.size + max(client_id_bytes, 0)
        if self.codec.is_flexible:
            if frame[body_at]:
                return False
            body_at += 1
        empty = self.codec.encode_request_body(_without_batch(request))
        # What an empty batch leaves: its length, of one byte in a flexible version, and no tags.
        length_at = -1 - len(_NO_TAGS) if self._is_flexible else -_LENGTH.size
        is_alike = frame[body_at:start].tobytes() == empty[:length_at]
        return is_alike and self._batch_at(start, frame) is not None


def _only_batch(request: ProduceRequest) -> bytes | memoryview | None:
    """The batch, if there is one, for one partition."""
    if len(request.topic_data) != 1 or len(request.topic_data[0].partition_data) != 1:
        return None
    return request.topic_data[0].partition_data[0].records


def _without_batch(request: ProduceRequest) -> ProduceRequest:
    (topic,) = request.topic_data
    (data,) = topic.partition_data
    topic = TopicProduceData(
        name=topic.name,
        topic_id=topic.topic_id,
        partition_data=[PartitionProduceData(index=data.index, records=b"")],
    )
    return ProduceRequest(acks=request.acks, timeout_ms=request.timeout_ms, topic_data=[topic])


def _read_length(frame: memoryview, at: int) -> tuple[int, int]:
    """A compact length and where it ends; 0 for one that is cut off, or longer than any is."""
    value = shift = 0
    for byte in frame[at : at + 5]:
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value - 1, at
        shift += 7
    return 0, at


def _marked_answer(topic: TopicProduceData, codec: ApiCodec) -> bytes:
    answer = PartitionProduceResponse(
        index=0, base_offset=_MARK, log_append_time_ms=_MARK, log_start_offset=_MARK
    )
    topic_answer = TopicProduceResponse(
        name=topic.name, topic_id=topic.topic_id, partition_responses=[answer]
    )
    response = ProduceResponse(responses=[topic_answer])
    (encoded,) = codec.encode_response(response, 0)
    assert isinstance(encoded, bytes)
    return encoded
