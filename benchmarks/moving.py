"""What does a producer notice when the leader of its partition is moved?

Three broker processes; one partition that takes 5 MB/s with acks=all, and is moved to and fro
meanwhile. How long writes were held is what the brokers say of each move. The slowest answer is
what the producer saw: the longest time from handing a record over to its acknowledgement, of those
that were under way during the move or handed over right after it. It has no aim: librdkafka and
aiokafka wait 0.1 s before they try again what was refused, and producer and brokers share this
machine's cores.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import trio
from aiokafka import AIOKafkaProducer
from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.harness import Row
from tidemark.client import open_client
from tidemark.client.blocking import open_client as open_blocking_client
from tidemark.client.load import percentile
from tidemark.protocol.errors import RequestError
from tidemark.testing.process_cluster import ProcessCluster, open_process_cluster

MOVES: Final = 40
_REST_SECONDS: Final = 0.5
_RECORD_BYTES: Final = 10_000
_RATE: Final = 500
"""Records a second: 5 MB/s."""
_BATCH_BYTES: Final = 256 * 1024
"""With one request at a time, a batch of the usual 16 KiB would have to be answered in 3 ms."""
_WARM_SECONDS: Final = 2.0
_VALUE: Final = bytes(_RECORD_BYTES)


@dataclass(slots=True)
class Seen:
    """What a producer saw: when each record was handed over, and when it was acknowledged."""

    answers: list[tuple[float, float]] = field(default_factory=list)
    failed: int = 0


@dataclass(slots=True)
class _Moves:
    """The moves that were made meanwhile."""

    spans: list[tuple[float, float]] = field(default_factory=list)
    held: list[float] = field(default_factory=list)
    refused: int = 0
    is_over: threading.Event = field(default_factory=threading.Event)


Produce = Callable[[str, str, threading.Event], Seen]
"""Produces to a bootstrap address and a topic until the event is set."""


def measure(directory: Path) -> Iterator[Row]:
    """The rows for each library."""
    folder = directory / "moving"
    folder.mkdir()
    with open_process_cluster(folder, settings={"leader.balance.enable": "false"}) as cluster:
        for library, produce in LIBRARIES.items():
            topic = f"moving-{library}"
            admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
            admin.create_topics([NewTopic(topic, 1, 3)])[topic].result(20)
            yield from _rows(library, *_run(cluster, topic, produce))


def _run(cluster: ProcessCluster, topic: str, produce: Produce) -> tuple[Seen, _Moves]:
    moves = _Moves()
    thread = threading.Thread(target=_move, args=(cluster, topic, moves))
    thread.start()
    seen = produce(cluster.bootstrap, topic, moves.is_over)
    thread.join()
    return seen, moves


def _move(cluster: ProcessCluster, topic: str, moves: _Moves) -> None:
    try:
        with open_blocking_client(cluster.bootstrap) as client:
            time.sleep(_WARM_SECONDS)
            for turn in range(MOVES):
                (partition,) = client.run(client.admin.describe_topic, topic).partitions
                others = [node for node in cluster.brokers if node != partition.leader]
                begun = time.perf_counter()
                try:
                    moved = client.run(
                        client.admin.move_leader, topic, 0, to=others[turn % len(others)]
                    )
                except RequestError:
                    moves.refused += 1
                else:
                    moves.spans.append((begun, time.perf_counter()))
                    moves.held.append(moved.pause_seconds)
                time.sleep(_REST_SECONDS)
    finally:
        moves.is_over.set()


def _rows(library: str, seen: Seen, moves: _Moves) -> Iterator[Row]:
    case = f"5 MB/s, acks=all, 3 replicas, {MOVES} moves; {library}"
    slowest = [_slowest(seen, *span) for span in moves.spans]
    for what, values, aims in (
        ("writes held", moves.held, (30.0, 150.0)),
        ("slowest answer", slowest, (None, None)),
    ):
        for name, fraction, aim in zip(("p50", "p99"), (0.5, 0.99), aims, strict=True):
            yield Row(
                question=f"a leader's move: {what}, {name}",
                case=case,
                value=percentile(sorted(values), fraction) * 1e3,
                unit="ms",
                runs=len(values),
                aim=aim,
                at_most=True,
            )
    for what, count, total in (
        ("failed requests", seen.failed, len(seen.answers) + seen.failed),
        ("moves that came to nothing", moves.refused, MOVES),
    ):
        yield Row(
            question=f"a leader's move: {what}",
            case=case,
            value=count,
            unit=f"of {total}",
            aim=0,
            at_most=True,
        )


def _slowest(seen: Seen, begun: float, ended: float) -> float:
    """The longest that a record took which met the move."""
    met = [
        answered - sent
        for sent, answered in seen.answers
        if answered >= begun and sent <= ended + _REST_SECONDS / 2
    ]
    return max(met, default=0.0)


def _due(is_over: threading.Event) -> Iterator[float]:
    """How long to wait before each record; they are due at a steady rate."""
    begun = time.perf_counter()
    number = 0
    while not is_over.is_set():
        yield max(0.0, begun + number / _RATE - time.perf_counter())
        number += 1


def _librdkafka(bootstrap: str, topic: str, is_over: threading.Event) -> Seen:
    seen = Seen()

    def send() -> None:
        sent = time.perf_counter()

        def delivered(error: KafkaError | None, _message: Message) -> None:
            if error is None:
                seen.answers.append((sent, time.perf_counter()))
            else:
                seen.failed += 1

        producer.produce(topic, _VALUE, partition=0, on_delivery=delivered)

    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 1})
    for seconds in _due(is_over):
        producer.poll(seconds)
        send()
    producer.flush(30)
    return seen


def _aiokafka(bootstrap: str, topic: str, is_over: threading.Event) -> Seen:
    seen = Seen()

    async def run() -> None:
        settings: dict[str, Any] = {"acks": "all", "max_batch_size": _BATCH_BYTES}  # Any: no types
        async with AIOKafkaProducer(bootstrap_servers=bootstrap, **settings) as producer:
            waiting = set[asyncio.Future[object]]()
            for seconds in _due(is_over):
                await asyncio.sleep(seconds)
                sent = time.perf_counter()
                delivery = await producer.send(topic, _VALUE, partition=0)
                waiting.add(delivery)

                def delivered(done: Any, sent: float = sent) -> None:  # Any: as above
                    waiting.discard(done)
                    if done.exception() is None:
                        seen.answers.append((sent, time.perf_counter()))
                    else:
                        seen.failed += 1

                delivery.add_done_callback(delivered)
            await producer.flush()

    asyncio.run(run())
    return seen


def _tidemark(bootstrap: str, topic: str, is_over: threading.Event) -> Seen:
    seen = Seen()

    async def run() -> None:
        async with (
            open_client(bootstrap) as client,
            client.producer(acks="all", batch_bytes=_BATCH_BYTES) as producer,
        ):
            send, receive = trio.open_memory_channel[Any](1_000_000)  # Any: a delivery, and when
            async with trio.open_nursery() as nursery:
                nursery.start_soon(wait, receive)
                async with send:
                    for seconds in _due(is_over):
                        await trio.sleep(seconds)
                        sent = time.perf_counter()
                        delivery = await producer.send(topic, _VALUE, partition=0)
                        await send.send((sent, delivery))

    async def wait(receive: trio.MemoryReceiveChannel[Any]) -> None:
        async for sent, delivery in receive:
            try:
                await delivery.wait()
            except (RequestError, OSError):
                seen.failed += 1
            else:
                seen.answers.append((sent, time.perf_counter()))

    trio.run(run)
    return seen


LIBRARIES: Final[dict[str, Produce]] = {
    "librdkafka": _librdkafka,
    "aiokafka": _aiokafka,
    "tidemark": _tidemark,
}
