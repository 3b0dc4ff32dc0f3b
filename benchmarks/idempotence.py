"""What does idempotence cost a producer?

The same batches from the same client, in turns: with a producer's id and sequences, and without.
Every request of a run is made before it begins, since each has another sequence; and so they are
for the plain ones. The client does the same for both, so the difference is the broker's. What
counts is the broker's time on the processor: it is what bounds the throughput, and the difference
is smaller than what a busy machine makes of the same run by the clock.
"""

from __future__ import annotations

import os
import shutil
import socket
import struct
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from benchmarks.against_limits import Address, address_of
from benchmarks.anew import Anew
from benchmarks.harness import Row, row_of_pairs
from benchmarks.librdkafka import COMMON, MOCK, RECORDS, TOPIC, rate
from benchmarks.raw_client import batch_of, check_produced, create_topic, produce_frame
from tidemark.cli.processes import cpu_seconds
from tidemark.protocol.records.header import place_producer, read_header
from tidemark.testing.process import BrokerProcess, open_broker_process

_LENGTH: Final = struct.Struct(">i")
_Run = TypeVar("_Run")
_IN_FLIGHT: Final = 5
_AIM: Final = 0.95
_PAIRS: Final = 100
"""Many short ones: the difference is smaller than what a noisy machine makes of one run."""
_CLIENT_ROUNDS: Final = 15
_SHAPES: Final = (
    ("one 1 KB record a request", 1_100, 4_000),
    ("16 KB requests", 16_384, 2_000),
    ("1 MB requests", 1_000_000, 40),
)
"""Bytes of a batch, and requests in a run."""


def measure(directory: Path) -> Iterator[Row]:
    """Rows for `flush=os`, where the broker's own work is most of it."""
    for case, batch_bytes, requests in _SHAPES:
        folder = directory / f"idempotence-{batch_bytes}"
        folder.mkdir()
        with open_broker_process(folder / "data") as broker:
            topic = f"idempotent-{batch_bytes}"
            create_topic(address_of(broker), topic, flush="os")
            producers = _Producers(broker, topic, batch_bytes, requests)
            pairs = [
                _both(producers.rate_of, first=bool(number % 2)) for number in range(_PAIRS + 2)
            ][2:]
        shutil.rmtree(folder)
        yield row_of_pairs(
            "produce, flush=os, idempotent: requests a processor second of the broker",
            f"{case}, 1 connection, 5 in flight",
            "requests/s",
            pairs,
            against="the same without",
            aim=_AIM,
        )
    yield from _from_librdkafka(directory / "idempotence-librdkafka")


def _from_librdkafka(folder: Path) -> Iterator[Row]:
    """What a producer notices of it, by the clock, and who spends that: the broker, or the client
    itself, which loses with its own mock cluster what is its own."""
    folder.mkdir()
    with open_broker_process(folder / "data") as broker:
        begin = Anew(
            broker.bootstrap,
            folder,
            TOPIC,
            partial(create_topic, address_of(broker), flush="os"),
        )

        def ours(is_idempotent: bool) -> _ClientRun:
            address = {"bootstrap.servers": broker.bootstrap}
            return _client_run(address, is_idempotent, begin(), broker.pid)

        def mock(is_idempotent: bool) -> _ClientRun:
            return _client_run(MOCK, is_idempotent, TOPIC, os.getpid())

        rounds = [
            (*_both(ours, first=bool(number % 2)), *_both(mock, first=bool(number % 2)))
            for number in range(_CLIENT_ROUNDS + 1)
        ][1:]  # the first one warms what there is to warm
    case = "1 KB records, 1 partition, acks=all"
    without = "the same without"
    idempotent = "produce, flush=os, idempotent:"
    yield row_of_pairs(
        f"{idempotent} librdkafka's throughput",
        case,
        "records/s",
        [(ours.rate, plain.rate) for ours, plain, _, _ in rounds],
        against=without,
    )
    yield row_of_pairs(
        f"{idempotent} what is left of librdkafka's throughput",
        case,
        "%",
        [
            (100 * ours.rate / plain.rate, 100 * mock.rate / mock_plain.rate)
            for ours, plain, mock, mock_plain in rounds
        ],
        against="what its own mock cluster leaves of it",
        aim=_AIM,
    )
    for whose, name in (("the broker", "by_broker"), ("librdkafka itself", "by_client")):
        yield row_of_pairs(
            f"{idempotent} records a processor second of {whose}",
            f"from librdkafka, {case}",
            "records/s",
            [(getattr(ours, name), getattr(plain, name)) for ours, plain, _, _ in rounds],
            against=without,
            aim=_AIM if name == "by_broker" else None,
        )


class _ClientRun(NamedTuple):
    """Records a second: of the clock, and of processors."""

    rate: float
    by_broker: float
    by_client: float


def _both(run: Callable[[bool], _Run], *, first: bool) -> tuple[_Run, _Run]:
    """Idempotent and plain; `first` says which comes first, for that is not the same to both: who
    comes second was seen to need 3 % less."""
    found = {first: run(first), not first: run(not first)}
    return found[True], found[False]


def _client_run(
    settings: Mapping[str, object], is_idempotent: bool, topic: str, broker: int
) -> _ClientRun:
    all_settings = {
        **COMMON,
        **settings,
        "enable.idempotence": is_idempotent,
        "max.in.flight.requests.per.connection": _IN_FLIGHT,  # without it, a million
    }
    before, client_before = cpu_seconds(broker), time.process_time()
    per_second = rate(all_settings, topic)
    broker_seconds = cpu_seconds(broker) - before
    client_seconds = time.process_time() - client_before
    return _ClientRun(per_second, RECORDS / broker_seconds, RECORDS / client_seconds)


class _Producers:
    def __init__(self, broker: BrokerProcess, topic: str, batch_bytes: int, requests: int) -> None:
        self._broker = broker
        self._topic = topic
        self._batch = batch_of(batch_bytes, record_bytes=1_000)
        self._requests = requests
        self._ids = count(1_000_000)

    def rate_of(self, is_idempotent: bool) -> float:
        """Requests a processor second; each idempotent run is a producer of its own."""
        if not is_idempotent:
            return self._rate([-1] * self._requests, producer_id=-1)
        records = read_header(self._batch).record_count
        sequences = [number * records for number in range(self._requests)]
        return self._rate(sequences, producer_id=next(self._ids))

    def _rate(self, sequences: Sequence[int], *, producer_id: int) -> float:
        batch = bytearray(self._batch)
        frames = list[bytes]()
        for sequence in sequences:
            epoch = -1 if producer_id < 0 else 0
            place_producer(batch, 0, producer_id=producer_id, epoch=epoch, sequence=sequence)
            frames.append(produce_frame(self._topic, bytes(batch), acks=-1))
        before = cpu_seconds(self._broker.pid)
        answers = _send_all(address_of(self._broker), frames)
        seconds = cpu_seconds(self._broker.pid) - before
        for answer in answers:
            check_produced(answer)
        return len(frames) / seconds


def _send_all(address: Address, frames: Sequence[bytes]) -> Sequence[bytes]:
    """The answers, which are all of one length."""
    received = bytearray()
    with socket.create_connection(address) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, True)
        buffer = memoryview(bytearray(1 << 16))
        sent = answered = answer_bytes = 0
        while answered < len(frames):
            wanted = min(answered + _IN_FLIGHT, len(frames))
            client.sendall(b"".join(frames[sent:wanted]))
            sent = wanted
            size = client.recv_into(buffer)
            if not size:
                raise ConnectionError("the broker has closed the connection")
            received += buffer[:size]
            answer_bytes = answer_bytes or _LENGTH.size + _LENGTH.unpack_from(received)[0]
            answered = len(received) // answer_bytes
    starts = range(_LENGTH.size, len(received), answer_bytes)
    return [bytes(received[at : at + answer_bytes - _LENGTH.size]) for at in starts]
