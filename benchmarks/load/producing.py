"""Producing as cheaply as can be, from a process of its own: at full speed, or on a schedule.

Frames are encoded once and sent again and again. On a schedule every request has a time at which it
is *due*, whatever became of those before it, and its latency counts from then: a broker that stands
still for 100 ms has delayed all that was due in them, and no omission is coordinated with it.
"""

from __future__ import annotations

import itertools
import select
import socket
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from benchmarks.raw_client import (
    check_produced,
    connect,
    produce_frame,
    read_frame,
    send_frames,
)
from tidemark.client.histogram import Histogram

_NS: Final = 1_000_000_000
_RECEIVE_BYTES: Final = 64 * 1024
_DRAIN_SECONDS: Final = 30.0
_NEW_SECONDS_MAX: Final = 15.0
_LENGTH_BYTES: Final = 4


@dataclass(slots=True)
class Lane:
    """One connection, the frames that take turns on it, and what has been asked and answered."""

    client: socket.socket
    frames: Iterator[bytes]
    received: bytearray = field(default_factory=bytearray)
    due: deque[int] = field(default_factory=deque)
    unanswered: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Produced:
    """What a window of time saw. `latency` is there for a schedule only."""

    requests: int
    handled: int
    """With those that were answered after it: what the brokers' processor time has been for."""
    seconds: float
    began_ns: int
    latency: Histogram = field(default_factory=Histogram)
    lateness: Histogram = field(default_factory=Histogram)
    """How long after a request was due it went out: the generator's own part."""


class Producers:
    """The connections of one generator, each to a broker that leads some of the partitions."""

    def __init__(self, topic: str, *, is_bare: bool = False) -> None:
        """`is_bare`: they talk to the bare loop, whose answers say nothing."""
        self._lanes: dict[int, Lane] = {}
        self._poll = select.epoll()
        self._buffer = memoryview(bytearray(_RECEIVE_BYTES))
        self._answer_bytes = 0
        # The low byte of the error code in an answer of version 7 with one partition; no code of
        # Kafka's has a low byte of zero, but that of no error.
        self._error_at = 4 + 4 + 4 + 2 + len(topic.encode()) + 4 + 4 + 1
        self._is_bare = is_bare

    def connect(self, address: tuple[str, int], frames: Sequence[bytes]) -> None:
        """One more connection. Raises `RuntimeError` if its first request is refused for long."""
        client = connect(address)
        answer = _first_answer(client, frames[0], is_bare=self._is_bare)
        self._answer_bytes = len(answer) + _LENGTH_BYTES
        self._lanes[client.fileno()] = Lane(client, itertools.cycle(frames))
        self._poll.register(client.fileno(), select.EPOLLIN)

    def warm(self, *, requests: int, in_flight: int) -> None:
        """The first write to a partition opens its files, and the first to memory finds it."""
        while requests > 0:
            requests -= self.as_fast_as_answered(seconds=0.2, in_flight=in_flight).requests

    def as_fast_as_answered(self, *, seconds: float, in_flight: int) -> Produced:
        """Keep `in_flight` requests on each connection for so long, and until one is answered."""
        began = time.perf_counter_ns()
        end = began + int(seconds * _NS)
        answered = 0
        for lane in self._lanes.values():
            self._send(lane, in_flight)
        while (now := time.perf_counter_ns()) < end or not answered:
            if now > end + _DRAIN_SECONDS * _NS:
                raise TimeoutError(f"no request was answered for {_DRAIN_SECONDS} s")
            for descriptor, _ in self._poll.poll(0.5):
                lane = self._lanes[descriptor]
                answers = self._receive(lane)
                answered += answers
                self._send(lane, answers)
        handled = answered + self._drain()
        seconds = (now - began) / _NS
        return Produced(requests=answered, handled=handled, seconds=seconds, began_ns=began)

    def on_schedule(self, *, seconds: float, rate: float) -> Produced:
        """Send `rate` requests a second, each when it is due, and measure from then."""
        latency, lateness = Histogram(), Histogram()
        gap, total = _NS / rate, int(seconds * rate)
        began = time.perf_counter_ns() + _NS // 100
        turns = itertools.cycle(self._lanes.values())
        sent = answered = 0
        while sent < total:
            now = time.perf_counter_ns()
            while sent < total and (due := began + int(sent * gap)) <= now:
                lane = next(turns)
                lane.due.append(due)
                self._send(lane, 1)
                lateness.record(time.perf_counter_ns() - due)
                sent += 1
            answered += self._receive_due(latency, until=began + int(sent * gap))
        while answered < total:
            before = answered
            answered += self._receive_due(latency, until=time.perf_counter_ns() + 10 * _NS)
            if answered == before:
                raise TimeoutError(f"{total - answered} requests were not answered for 10 s")
        seconds = (time.perf_counter_ns() - began) / _NS
        return Produced(
            requests=answered,
            handled=answered,
            seconds=seconds,
            began_ns=began,
            latency=latency,
            lateness=lateness,
        )

    def close(self) -> None:
        self._poll.close()
        for lane in self._lanes.values():
            lane.client.close()

    def _receive_due(self, latency: Histogram, *, until: int) -> int:
        """Take the answers that are there, waiting for one at most `until` then."""
        wait = max(0, until - time.perf_counter_ns()) / _NS
        # epoll waits in whole milliseconds; select on it in microseconds.
        if not select.select([self._poll], [], [], wait)[0]:
            return 0
        answered = 0
        for descriptor, _ in self._poll.poll(0):
            lane = self._lanes[descriptor]
            answers = self._receive(lane)
            now = time.perf_counter_ns()
            for _ in range(answers):
                latency.record(now - lane.due.popleft())
            answered += answers
        return answered

    def _send(self, lane: Lane, count: int) -> None:
        if count:
            lane.unanswered += count
            send_frames(lane.client, list(itertools.islice(lane.frames, count)))

    def _receive(self, lane: Lane) -> int:
        """How many answers came in. Raises `RuntimeError` if one of them is a refusal."""
        size = lane.client.recv_into(self._buffer)
        if not size:
            raise ConnectionError("the broker has closed the connection")
        received = lane.received
        received += self._buffer[:size]
        answers, rest = divmod(len(received), self._answer_bytes)
        whole = len(received) - rest
        codes = received[self._error_at : whole : self._answer_bytes]
        if codes.count(0) != answers and not self._is_bare:
            raise RuntimeError(f"a batch was refused: error {max(codes)}")
        del received[:whole]
        lane.unanswered -= answers
        return answers

    def _drain(self) -> int:
        """Take what is still to come; how many answers that was."""
        answered = 0
        deadline = time.monotonic() + _DRAIN_SECONDS
        while any(lane.unanswered for lane in self._lanes.values()):
            if time.monotonic() > deadline:
                raise TimeoutError(f"requests were not answered for {_DRAIN_SECONDS} s")
            for descriptor, _ in self._poll.poll(0.5):
                answered += self._receive(self._lanes[descriptor])
        return answered


def _first_answer(client: socket.socket, frame: bytes, *, is_bare: bool) -> bytes:
    """The answer to one request, asked again while the partition has no leader yet."""
    deadline = time.monotonic() + _NEW_SECONDS_MAX
    while True:
        client.sendall(frame)
        answer = read_frame(client)
        try:
            if not is_bare:
                check_produced(answer)
        except RuntimeError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
        else:
            return answer


def frames_of(topic: str, partitions: Sequence[int], batch: bytes, *, acks: int) -> list[bytes]:
    return [produce_frame(topic, batch, acks=acks, partition=number) for number in partitions]
