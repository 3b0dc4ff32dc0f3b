"""What does idempotence cost a producer?

The same batches from the same client, in turns: with a producer's id and sequences, and without.
Every request of a run is made before it begins, since each has another sequence; and so they are
for the plain ones. The client does the same for both, so the difference is the broker's. What
counts is the broker's time on the processor: it is what bounds the throughput, and the difference
is smaller than what a busy machine makes of the same run by the clock.
"""

from __future__ import annotations

import shutil
import socket
import struct
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import Final

from benchmarks.against_limits import Address, address_of
from benchmarks.anew import Anew
from benchmarks.harness import Row, in_pairs, row_of_pairs
from benchmarks.librdkafka import COMMON, TOPIC, rate
from benchmarks.raw_client import batch_of, check_produced, create_topic, produce_frame
from tidemark.cli.processes import cpu_seconds
from tidemark.protocol.records.header import place_producer, read_header
from tidemark.testing.process import BrokerProcess, open_broker_process

_LENGTH: Final = struct.Struct(">i")
_IN_FLIGHT: Final = 5
_AIM: Final = 0.95
_PAIRS: Final = 41
"""Many short ones: the difference is smaller than what a noisy machine makes of one run."""
_CLIENT_PAIRS: Final = 15
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
            pairs = in_pairs(producers.idempotent, producers.plain, runs=_PAIRS)
        shutil.rmtree(folder)
        yield row_of_pairs(
            "produce, flush=os, idempotent: requests a processor second of the broker",
            f"{case}, 1 connection, 5 in flight",
            "requests/s",
            pairs,
            against="the same without",
            aim=_AIM,
        )
    yield _from_librdkafka(directory / "idempotence-librdkafka")


def _from_librdkafka(folder: Path) -> Row:
    """What a producer notices of it, by the clock."""
    folder.mkdir()
    with open_broker_process(folder / "data") as broker:
        begin = Anew(
            broker.bootstrap,
            folder,
            TOPIC,
            partial(create_topic, address_of(broker), flush="os"),
        )

        def run(*, is_idempotent: bool) -> float:
            settings = {
                "bootstrap.servers": broker.bootstrap,
                "enable.idempotence": is_idempotent,
                "max.in.flight.requests.per.connection": _IN_FLIGHT,  # without it, a million
            }
            return rate({**COMMON, **settings}, begin())

        pairs = in_pairs(
            lambda: run(is_idempotent=True),
            lambda: run(is_idempotent=False),
            runs=_CLIENT_PAIRS,
        )
    return row_of_pairs(
        "produce, flush=os, idempotent: librdkafka's throughput",
        "1 KB records, 1 partition, acks=all",
        "records/s",
        pairs,
        against="the same without",
        aim=_AIM,
    )


class _Producers:
    def __init__(self, broker: BrokerProcess, topic: str, batch_bytes: int, requests: int) -> None:
        self._broker = broker
        self._topic = topic
        self._batch = batch_of(batch_bytes, record_bytes=1_000)
        self._requests = requests
        self._ids = count(1_000_000)

    def plain(self) -> float:
        """Requests a processor second."""
        return self._rate([-1] * self._requests, producer_id=-1)

    def idempotent(self) -> float:
        """Likewise; each run is a producer of its own."""
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
