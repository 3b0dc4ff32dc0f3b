"""Consuming as cheaply as can be: answers are received over one buffer and only their sizes read.

An answer's few dozen bytes before each partition's records say how much comes; every batch of a
topic of the benchmark has the same size, so that is how far the reader has come.
"""

from __future__ import annotations

import select
import struct
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Final

from benchmarks.raw_client import FETCH_VERSION, connect
from tidemark.protocol.frames import encode_request
from tidemark.protocol.messages import fetch

_NS: Final = 1_000_000_000
_RECEIVE_BYTES: Final = 1 << 20
_STALLED_SECONDS: Final = 10.0
_OFFSET: Final = struct.Struct(">q")
_SENTINEL: Final = 0x7A7A_7A7A_0000
# Length, correlation id, throttle time, error, session id, count of topics, length of the name.
_START: Final = struct.Struct(">iiihiih")
_COUNT: Final = struct.Struct(">i")
# Index, error, high watermark, last stable offset, log start, aborted transactions, replica, bytes.
_PARTITION: Final = struct.Struct(">ihqqqiii")

Parsing = Generator[int, bytes, None]
"""Asks for so many bytes; or, below zero, for so many to be passed over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What is read: the topic's partitions, and the batches in them, all alike."""

    topic: str
    partitions: Sequence[int]
    batch_bytes: int
    batch_records: int
    fetch_bytes: int


@dataclass(slots=True)
class Read:
    """What one reader has got. `arrivals` says when the offsets below some were there."""

    size_bytes: int = 0
    requests: int = 0
    arrivals: list[tuple[int, int]] = field(default_factory=list)


class Reader:
    """One connection that always has one fetch under way, for all its partitions."""

    def __init__(
        self, address: tuple[str, int], shape: Shape, starts: Sequence[int], ends: Sequence[int]
    ) -> None:
        """From `starts` on; a reader with `ends` begins anew when it has come there."""
        self.client = connect(address)
        self.read = Read()
        self._shape = shape
        self._starts, self._ends = list(starts), list(ends)
        self._offsets = list(starts)
        self._frame = bytearray(_fetch_frame(shape))
        self._places = [self._frame.index(_OFFSET.pack(_SENTINEL + n)) for n in range(len(starts))]
        self._numbers = {number: place for place, number in enumerate(shape.partitions)}
        self._held = bytearray()
        self._parsing = self._answer()
        self._wanted = next(self._parsing)

    def ask(self) -> None:
        for place, offset in zip(self._places, self._offsets, strict=True):
            _OFFSET.pack_into(self._frame, place, offset)
        self.client.sendall(self._frame)

    def is_short_of(self, size_bytes: int) -> bool:
        """Whether it reads the tail and has less than that, or catches up and has nothing."""
        return self.read.size_bytes < (1 if self._ends else size_bytes)

    def take(self, data: memoryview) -> None:
        """Take in what has been received; asks for more when an answer is complete."""
        at, size = 0, len(data)
        while at < size:
            if self._wanted < 0:
                passed = min(-self._wanted, size - at)
                at += passed
                self._wanted += passed
                if self._wanted == 0:
                    self._wanted = next(self._parsing)
                continue
            missing = self._wanted - len(self._held)
            self._held += data[at : at + missing]
            at += min(missing, size - at)
            if len(self._held) == self._wanted:
                held = bytes(self._held)
                self._held.clear()
                self._wanted = self._parsing.send(held)

    def _answer(self) -> Parsing:
        while True:
            _, _, _, error, _, topics, name = _START.unpack((yield _START.size))
            if error or topics != 1:
                raise RuntimeError(f"a fetch of one topic got {topics}, and error {error}")
            (partitions,) = _COUNT.unpack_from((yield name + _COUNT.size), name)
            for _ in range(partitions):
                yield from self._partition()
            self.read.requests += 1
            self.ask()

    def _partition(self) -> Parsing:
        head = yield _PARTITION.size
        number, error, _, _, _, aborted, _, size = _PARTITION.unpack(head)
        if error or aborted > 0:
            raise RuntimeError(f"partition {number} answers error {error}")
        if size <= 0:
            return
        yield -size
        shape, place = self._shape, self._numbers[number]
        batches = size // shape.batch_bytes
        if not batches:
            raise RuntimeError(f"{size} bytes came, and no whole batch of {shape.batch_bytes}")
        self.read.size_bytes += batches * shape.batch_bytes
        self._offsets[place] += batches * shape.batch_records
        self.read.arrivals.append((self._offsets[place], time.perf_counter_ns()))
        if self._ends and self._offsets[place] >= self._ends[place]:
            self._offsets[place] = self._starts[place]


def read_until_told(readers: Sequence[Reader], told: int, goal: Callable[[], int]) -> float:
    """Drive the readers until there is something to read from descriptor `told`; the seconds.

    And then until those at the tail have as many bytes as `goal` says, which takes what was told:
    without the last ones, the slowest would be left out. Raises `TimeoutError` if they do not come.
    """
    poll = select.epoll()
    by_descriptor = {reader.client.fileno(): reader for reader in readers}
    buffer = memoryview(bytearray(_RECEIVE_BYTES))
    for descriptor in (*by_descriptor, told):
        poll.register(descriptor, select.EPOLLIN)
    began = time.perf_counter_ns()
    wanted: int | None = None
    for reader in readers:
        reader.ask()
    while wanted is None or any(reader.is_short_of(wanted) for reader in readers):
        ready = poll.poll(_STALLED_SECONDS if wanted is not None else None)
        if not ready:
            raise TimeoutError(f"readers got nothing for {_STALLED_SECONDS} s")
        for descriptor, _ in ready:
            if descriptor == told:
                wanted = goal()
                poll.unregister(told)
                continue
            reader = by_descriptor[descriptor]
            size = reader.client.recv_into(buffer)
            if not size:
                raise ConnectionError("the broker has closed the connection")
            reader.take(buffer[:size])
    poll.close()
    return (time.perf_counter_ns() - began) / _NS


def _fetch_frame(shape: Shape) -> bytes:
    """A fetch of all partitions, from offsets that are put in its place each time."""
    request = fetch.FetchRequest(
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=shape.fetch_bytes,
        topics=[
            fetch.FetchTopic(
                topic=shape.topic,
                partitions=[
                    fetch.FetchPartition(
                        partition=number,
                        fetch_offset=_SENTINEL + place,
                        partition_max_bytes=shape.fetch_bytes,
                    )
                    for place, number in enumerate(shape.partitions)
                ],
            )
        ],
    )
    return encode_request(request, FETCH_VERSION, 1, "bench")
