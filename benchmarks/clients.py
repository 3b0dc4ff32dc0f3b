"""What do client libraries get through, ours and librdkafka, over the usual shapes of load?

Records of 100 B and 1 KB, 1 and 16 partitions, batches of 16 KB and 256 KB, acks 1 and all, both
flush modes. Here the client is often the limit, so these figures are for comparing with each other.
"""

import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import trio
from confluent_kafka import Consumer, Producer, TopicPartition

from benchmarks.harness import Row, row_of
from tidemark.client import open_client
from tidemark.client.load import Acks, Load, consume, make_topic, produce
from tidemark.testing.process import BrokerProcess, open_broker_process

RUNS = 3
SIZE_BYTES = 20_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """One point of the matrix."""

    flush: str
    acks: Acks
    record_bytes: int
    partitions: int
    batch_bytes: int

    @property
    def records(self) -> int:
        return SIZE_BYTES // self.record_bytes

    def __str__(self) -> str:
        return (
            f"{self.record_bytes} B, {self.partitions} partition(s), "
            f"{self.batch_bytes // 1024} KB batches, acks={self.acks}, flush={self.flush}"
        )


def shapes() -> Iterator[Shape]:
    acks: tuple[Acks, Acks] = (1, "all")
    for flush, ack, record_bytes, partitions, batch_bytes in itertools.product(
        ("os", "commit"), acks, (100, 1_000), (1, 16), (16 * 1024, 256 * 1024)
    ):
        yield Shape(
            flush=flush,
            acks=ack,
            record_bytes=record_bytes,
            partitions=partitions,
            batch_bytes=batch_bytes,
        )


def measure(directory: Path) -> Iterator[Row]:
    """A row for each shape and client as it is measured."""
    with open_broker_process(directory / "clients") as broker:
        for number, shape in enumerate(shapes()):
            yield from _ours(broker, shape, number)
            yield from _librdkafka(broker, shape, number)


def _ours(broker: BrokerProcess, shape: Shape, number: int) -> Iterator[Row]:
    async def run(attempt: int) -> tuple[float, float]:
        load = Load(
            topic=f"ours-{number}-{attempt}",
            partitions=shape.partitions,
            records=shape.records,
            record_bytes=shape.record_bytes,
            batch_bytes=shape.batch_bytes,
            acks=shape.acks,
        )
        async with open_client(broker.bootstrap) as client:
            await make_topic(client, load, {"flush": shape.flush})
            written = await produce(client, load)
            read = await consume(client, load)
            await client.admin.delete_topic(load.topic)
        return written.records_per_second, read.records_per_second

    yield from _rows("tidemark.client", shape, [trio.run(run, n) for n in range(RUNS)])


def _librdkafka(broker: BrokerProcess, shape: Shape, number: int) -> Iterator[Row]:
    async def topic(name: str, *, delete: bool) -> None:
        load = Load(topic=name, partitions=shape.partitions, records=1, record_bytes=8)
        async with open_client(broker.bootstrap) as client:
            if delete:
                await client.admin.delete_topic(name)
            else:
                await make_topic(client, load, {"flush": shape.flush})

    def run(attempt: int) -> tuple[float, float]:
        name = f"librdkafka-{number}-{attempt}"
        trio.run(lambda: topic(name, delete=False))
        rates = _produce(broker, shape, name), _consume(broker, shape, name)
        trio.run(lambda: topic(name, delete=True))
        return rates

    yield from _rows("librdkafka", shape, [run(n) for n in range(RUNS)])


def _rows(client: str, shape: Shape, rates: list[tuple[float, float]]) -> Iterator[Row]:
    for what, values in zip(("produce", "consume"), zip(*rates, strict=True), strict=True):
        yield row_of(f"{client}: {what}", str(shape), "records/s", values)


def _produce(broker: BrokerProcess, shape: Shape, topic: str) -> float:
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "acks": str(shape.acks),
            "batch.size": shape.batch_bytes,
            "batch.num.messages": 1_000_000,
            "linger.ms": 5,
            "queue.buffering.max.messages": 10_000_000,
            "queue.buffering.max.kbytes": 2_000_000,
        }
    )
    value = bytes(shape.record_bytes)
    # As ours does: a first record of each partition connects, and finds out who leads it.
    for partition in range(shape.partitions):
        producer.produce(topic, value, partition=partition)
    assert producer.flush(30) == 0, "the first records were not acknowledged"
    start = time.perf_counter()
    for number in range(shape.records):
        producer.produce(topic, value, partition=number % shape.partitions)
        if number % 10_000 == 0:
            producer.poll(0)
    left = producer.flush(60)
    assert left == 0, f"{left} records were not acknowledged"
    return shape.records / (time.perf_counter() - start)


def _consume(broker: BrokerProcess, shape: Shape, topic: str) -> float:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "bench"})
    consumer.assign([TopicPartition(topic, number, 0) for number in range(shape.partitions)])
    remaining = shape.records
    start = time.perf_counter()
    while remaining > 0:
        remaining -= len(consumer.consume(min(10_000, remaining), 1.0))
    seconds = time.perf_counter() - start
    consumer.close()
    return shape.records / seconds
